// naive.cu with room for a mistake around its two functions, for the examples in CUDA: each replaces
// what it gets wrong in Right and defines the functions with LAYER_NORM(Bug).
#pragma once

#define ln_forward naive_ln_forward
#define ln_backward naive_ln_backward
#include "naive.cu"
#undef ln_forward
#undef ln_backward

inline cudaStream_t stream_of(assay_ctx* ctx) { return static_cast<cudaStream_t>(ctx->stream); }

// The arguments of ln_forward.
struct Forward {
  assay_ctx* ctx;
  const ln_params* p;
  const void* x;
  const float *gamma, *beta;
  void *y, *cache;

  int naive() const { return naive_ln_forward(ctx, p, x, gamma, beta, y, cache); }
};

// The arguments of ln_backward.
struct Backward {
  assay_ctx* ctx;
  const ln_params* p;
  const void *dy, *x;
  const float* gamma;
  const void* cache;
  void* dx;
  float *dgamma, *dbeta;

  int naive() const { return naive_ln_backward(ctx, p, dy, x, gamma, cache, dx, dgamma, dbeta); }
};

struct Right {
  static int forward(const Forward& call) { return call.naive(); }
  static int backward(const Backward& call) { return call.naive(); }
};

template <class Rstd>
__global__ void change_rstd(ln_params p, Statistics* cache) {
  const std::int64_t row = thread_index();
  if (row >= p.rows) return;
  const double rstd = cache[row].rstd;
  cache[row].rstd = static_cast<float>(Rstd{}(p, 1 / (rstd * rstd) - p.eps));
}

// Forward, then each row's cached rstd as a function of the params and its variance.
template <class Rstd>
int with_rstd(const Forward& call, Rstd) {
  const int status = call.naive();
  if (status != ASSAY_OK || call.p->rows * call.p->D == 0) return status;
  change_rstd<Rstd><<<blocks(call.p->rows), kThreads, 0, stream_of(call.ctx)>>>(
      *call.p, static_cast<Statistics*>(call.cache));
  return launch_status();
}

// Device memory of a call, which is given back in its order.
class Scratch {
 public:
  Scratch(assay_ctx* ctx, std::int64_t floats)
      : ctx_(ctx),
        data_(static_cast<float*>(
            ctx->alloc(ctx, static_cast<std::size_t>(floats) * sizeof(float), 256, 1))) {}
  Scratch(const Scratch&) = delete;
  ~Scratch() {
    if (data_ != nullptr) ctx_->free(ctx_, data_);
  }
  float* data() const { return data_; }

 private:
  assay_ctx* ctx_;
  float* data_;
};

// Defines ln_forward and ln_backward with the mistake `Bug`.
#define LAYER_NORM(Bug)                                                                            \
  extern "C" int ln_forward(assay_ctx* ctx, const ln_params* p, const void* x, const float* gamma, \
                            const float* beta, void* y, void* cache) {                             \
    return Bug::forward({ctx, p, x, gamma, beta, y, cache});                                       \
  }                                                                                                \
  extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,    \
                             const float* gamma, const void* cache, void* dx, float* dgamma,       \
                             float* dbeta) {                                                       \
    return Bug::backward({ctx, p, dy, x, gamma, cache, dx, dgamma, dbeta});                        \
  }
