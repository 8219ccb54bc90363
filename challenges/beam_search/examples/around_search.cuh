// naive.cu with room for a mistake around beam_search and around the model that it calls, for the
// examples in CUDA: each defines answer().
#pragma once

#define beam_search naive_beam_search
#include "naive.cu"
#undef beam_search

// The arguments of beam_search.
struct Search {
  assay_ctx* ctx;
  const bs_params* p;
  const assay_lm* lm;
  std::int32_t *seq, *len;
  double *acc, *score;
  std::int32_t *finished, *n_out;

  int naive() const { return naive_beam_search(ctx, p, lm, seq, len, acc, score, finished, n_out); }
  // Whether there is a model to be changed and an item to be searched.
  bool has_items() const {
    return p != nullptr && lm != nullptr && p->size == sizeof(bs_params) &&
           lm->size == sizeof(assay_lm) && in_range(*p, *lm) && p->B > 0;
  }
};

// What beam_search does.
static int answer(const Search&);

extern "C" int beam_search(assay_ctx* ctx, const bs_params* p, const assay_lm* lm, int32_t* seq,
                           int32_t* len, double* acc, double* score, int32_t* finished,
                           int32_t* n_out) {
  return answer({ctx, p, lm, seq, len, acc, score, finished, n_out});
}

// A step of the model: its arguments.
struct Step {
  assay_ctx* ctx;
  std::int32_t n;
  const std::int32_t* item;
  const std::int64_t* parent;
  const std::int32_t* token;
  float* out;
  std::int64_t* state;

  int ask(const assay_lm& lm) const {
    return lm.step(lm.user, ctx, n, item, parent, token, out, state);
  }
};

// naive() with a model that takes its steps through between(lm, step).
template <class Between>
int with_model(const Search& call, Between between) {
  if (!call.has_items()) return call.naive();
  struct Model {
    const assay_lm& lm;
    Between& between;
  } model{*call.lm, between};
  assay_lm changed = *call.lm;
  changed.user = &model;
  changed.step = [](void* user, assay_ctx* ctx, std::int32_t n, const std::int32_t* item,
                    const std::int64_t* parent, const std::int32_t* token, float* out,
                    std::int64_t* state) {
    const auto& m = *static_cast<Model*>(user);
    return m.between(m.lm, Step{ctx, n, item, parent, token, out, state});
  };
  Search other = call;
  other.lm = &changed;
  return other.naive();
}

// Changes the rows that the model returned by Change(row, V), a thread for each.
template <class Change>
__global__ void change_rows(std::int32_t n, std::int32_t V, float* out) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row < n) Change{}(out + row * V, V);
}

template <class Change>
int with_rows(const Search& call, Change) {
  return with_model(call, [](const assay_lm& lm, const Step& step) {
    const int status = step.ask(lm);
    if (status != ASSAY_OK) return status;
    change_rows<Change><<<static_cast<unsigned>((step.n + kThreads - 1) / kThreads), kThreads, 0,
                          static_cast<cudaStream_t>(step.ctx->stream)>>>(step.n, lm.V, step.out);
    return cudaGetLastError() == cudaSuccess ? static_cast<int>(ASSAY_OK)
                                             : static_cast<int>(ASSAY_EINTERNAL);
  });
}
