// naive.cpp with room for a mistake around softmax_topk, for the examples: each defines answer().
#pragma once

#include <vector>

#define softmax_topk naive_softmax_topk
#include "naive.cpp"
#undef softmax_topk

// The arguments of softmax_topk.
struct Call {
  assay_ctx* ctx;
  const stk_params* p;
  const void* logits;
  std::int32_t* idx;
  float *prob, *lse;

  int naive() const { return naive_softmax_topk(ctx, p, logits, idx, prob, lse); }
  // Row r alone.
  int naive_row(stk_params one, std::int64_t r) const {
    return naive_row_at(one, r, r * p->ld * (p->dtype == ASSAY_F32 ? 4 : 2));
  }
  // The same, of logits that many bytes from the first.
  int naive_row_at(stk_params one, std::int64_t r, std::int64_t offset) const {
    one.rows = 1;
    return naive_softmax_topk(ctx, &one, static_cast<const char*>(logits) + offset, idx + r * p->K,
                              prob + r * p->K, lse != nullptr ? lse + r : nullptr);
  }

  bool valid() const { return ::valid(p, logits, idx, prob); }
  // Whether there is something to select, and in fp32.
  bool selects_fp32() const {
    return valid() && p->dtype == ASSAY_F32 && p->rows * p->V > 0 && p->K > 0;
  }
  const float* row(std::int64_t r) const { return static_cast<const float*>(logits) + r * p->ld; }
};

// What softmax_topk does.
static int answer(const Call&);

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* logits,
                            std::int32_t* idx, float* prob, float* lse) {
  return answer({ctx, p, logits, idx, prob, lse});
}

// naive() for changed params.
template <class Change>
int with_params(Call call, Change change) {
  if (!call.valid()) return ASSAY_EINVAL;
  stk_params changed = *call.p;
  change(changed);
  call.p = &changed;
  return call.naive();
}

// naive() for a copy of fp32 logits that change() has seen.
template <class Change>
int with_logits(Call call, Change change) {
  if (!call.selects_fp32()) return call.naive();
  std::vector<float> copy(call.row(0), call.row(call.p->rows));
  change(copy);
  call.logits = copy.data();
  return call.naive();
}

// naive(), and then change() of its outputs.
template <class Change>
int then(const Call& call, Change change) {
  const int status = call.naive();
  if (status == ASSAY_OK) change(*call.p);
  return status;
}
