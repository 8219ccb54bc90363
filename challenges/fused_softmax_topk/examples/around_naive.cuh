// naive.cu with room for a mistake around softmax_topk, for the examples in CUDA: each defines
// answer().
#pragma once

#define softmax_topk naive_softmax_topk
#include "naive.cu"
#undef softmax_topk

// The arguments of softmax_topk.
struct Call {
  assay_ctx* ctx;
  const stk_params* p;
  const void* logits;
  std::int32_t* idx;
  float *prob, *lse;

  int naive() const { return naive_softmax_topk(ctx, p, logits, idx, prob, lse); }
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
  if (!valid(call.p, call.logits, call.idx, call.prob)) return ASSAY_EINVAL;
  stk_params changed = *call.p;
  change(changed);
  call.p = &changed;
  return call.naive();
}

// The outputs of one row.
struct Row {
  std::int32_t K;
  std::int32_t* idx;
  float *prob, *lse;
};

template <class Change>
__global__ void change_rows(stk_params p, std::int32_t* idx, float* prob, float* lse) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= p.rows) return;
  Change{}(Row{p.K, idx + row * p.K, prob + row * p.K, lse == nullptr ? nullptr : lse + row});
}

// naive(), and then a Change of the outputs of every row.
template <class Change>
int then(const Call& call, Change) {
  const int status = call.naive();
  if (status != ASSAY_OK || call.p->rows == 0) return status;
  change_rows<Change>
      <<<static_cast<unsigned>((call.p->rows + kThreads - 1) / kThreads), kThreads, 0,
         static_cast<cudaStream_t>(call.ctx->stream)>>>(*call.p, call.idx, call.prob, call.lse);
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
