// fails: bias_null
// Takes NULL for a bias of 0.
#define fa_forward_bias naive_fa_forward_bias
#include "naive.cpp"
#undef fa_forward_bias

extern "C" int fa_forward_bias(assay_ctx* ctx, const fa_params* p, const fa_bias* shape,
                               const float* bias, const void* q, const void* k, const void* v,
                               void* o, float* lse) {
  if (bias == nullptr) return fa_forward(ctx, p, q, k, v, o, lse);
  return naive_fa_forward_bias(ctx, p, shape, bias, q, k, v, o, lse);
}
