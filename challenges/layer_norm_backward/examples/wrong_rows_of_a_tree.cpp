// fails: rows_1
// The tree over rows starts by adding row r + 1 to row r, and takes a row when there is none.
#define ln_backward naive_ln_backward
#include "naive.cpp"
#undef ln_backward

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma,
                           float* dbeta) {
  const int status = naive_ln_backward(ctx, p, dy, x, gamma, cache, dx, dgamma, dbeta);
  for (std::int64_t i = 0; status == ASSAY_OK && p->rows == 1 && dgamma != nullptr && i < p->D; ++i)
    dgamma[i] *= 2;
  return status;
}
