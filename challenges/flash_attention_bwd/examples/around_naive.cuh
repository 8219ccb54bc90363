// naive.cu with room for a mistake around fa_backward, for the examples in CUDA: each defines
// answer().
#pragma once

#define fa_backward naive_fa_backward
#include "naive.cu"
#undef fa_backward

// The arguments of fa_backward.
struct Call {
  assay_ctx* ctx;
  const fa_params* p;
  const void *dout, *q, *k, *v, *o;
  const float* lse;
  void *dq, *dk, *dv;

  int naive() const { return naive_fa_backward(ctx, p, dout, q, k, v, o, lse, dq, dk, dv); }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(ctx->stream); }
  std::int64_t queries() const { return p->B * p->Hq * p->Nq; }
};

// What fa_backward does.
static int answer(const Call&);

extern "C" int fa_backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q,
                           const void* k, const void* v, const void* o, const float* lse, void* dq,
                           void* dk, void* dv) {
  return answer({ctx, p, dout, q, k, v, o, lse, dq, dk, dv});
}

// naive() for changed params.
template <class Change>
int with_params(Call call, Change change) {
  if (call.p == nullptr) return ASSAY_EINVAL;
  fa_params changed = *call.p;
  change(changed);
  call.p = &changed;
  return call.naive();
}

// Device memory of a call, which is given back in its order. Nothing where there is none.
class Scratch {
 public:
  Scratch(assay_ctx* ctx, std::int64_t floats)
      : ctx_(ctx),
        data_(static_cast<float*>(
            ctx->alloc(ctx, static_cast<std::size_t>(floats + 1) * sizeof(float), 256, 1))) {}
  Scratch(const Scratch&) = delete;
  ~Scratch() {
    if (data_ != nullptr) ctx_->free(ctx_, data_);
  }
  float* data() const { return data_; }

 private:
  assay_ctx* ctx_;
  float* data_;
};

// Elements from the first of an array [B, H, N, D] to its last.
inline std::int64_t extent(const fa_params& p, std::int64_t H, std::int64_t N, std::int64_t D,
                           const assay_stride& s) {
  return p.B * H * N == 0 ? 0 : (p.B - 1) * s.b + (H - 1) * s.h + (N - 1) * s.n + D;
}

__device__ std::int64_t offset(const fa_params& p, std::int64_t row, const assay_stride& s) {
  return row / p.Nq / p.Hq * s.b + row / p.Nq % p.Hq * s.h + row % p.Nq * s.n;
}

// Changes the first `rows` rows of dq, dout or o, laid out as `stride` says, by Change(params, row,
// values), a thread for each.
template <class Change>
__global__ void change_rows(fa_params p, std::int64_t rows, assay_stride stride, float* values) {
  const std::int64_t row = thread_index();
  if (row < rows) Change{}(p, row, values + offset(p, row, stride));
}
