// naive.cpp with room for a mistake around its two functions, for the examples: each replaces what
// it gets wrong in Right and defines the functions with LAYER_NORM(Bug).
#pragma once

#define ln_forward naive_ln_forward
#define ln_backward naive_ln_backward
#include "naive.cpp"
#undef ln_forward
#undef ln_backward

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
  const Statistics* statistics() const { return static_cast<const Statistics*>(cache); }
};

struct Right {
  static int forward(const Forward& call) { return call.naive(); }
  static int backward(const Backward& call) { return call.naive(); }
};

// Forward, then each row's cached rstd as a function of its variance.
template <class Rstd>
int with_rstd(const Forward& call, Rstd rstd) {
  const int status = call.naive();
  if (status != ASSAY_OK || call.p->D == 0) return status;
  auto* s = static_cast<Statistics*>(call.cache);
  for (std::int64_t r = 0; r < call.p->rows; ++r) {
    const double var = 1 / (static_cast<double>(s[r].rstd) * s[r].rstd) - call.p->eps;
    s[r].rstd = static_cast<float>(rstd(var));
  }
  return ASSAY_OK;
}

// Backward, then dgamma and dbeta again, column by column, in one accumulator of type Float each.
template <class Float>
int with_column_sums(const Backward& call) {
  const int status = call.naive();
  if (status != ASSAY_OK || call.dgamma == nullptr || call.dbeta == nullptr) return status;
  const ln_params& p = *call.p;
  for (std::int64_t i = 0; i < p.D; ++i) {
    Float g = 0, b = 0;
    for (std::int64_t r = 0; r < p.rows; ++r) {
      const Float d = load(call.dy, p.dtype, r * p.D + i), x = load(call.x, p.dtype, r * p.D + i);
      g += d * (x - call.statistics()[r].mean) * call.statistics()[r].rstd;
      b += d;
    }
    call.dgamma[i] = static_cast<float>(g);
    call.dbeta[i] = static_cast<float>(b);
  }
  return ASSAY_OK;
}

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
