// fails: varlen_causal varlen_cross varlen_not_causal varlen_nan bias_full bias_of_heads bias_of_keys bias_of_queries fp8_causal fp8_not_causal fp8_poison
// A mistake in each optional function: packed sequences attended as a single one; a bias that is
// scaled as q.k is; fp8 values without their scale.
#define fa_forward_varlen naive_fa_forward_varlen
#define fa_forward_bias naive_fa_forward_bias
#define fa_forward_fp8 naive_fa_forward_fp8
#include "naive.cpp"
#undef fa_forward_varlen
#undef fa_forward_bias
#undef fa_forward_fp8

#include <vector>

extern "C" int fa_forward_varlen(assay_ctx* ctx, const fa_params* p, const fa_varlen* lengths,
                                 const void* q, const void* k, const void* v, void* o, float* lse) {
  fa_params one = *p;
  one.B = 1;
  one.Nq = lengths->total_q;
  one.Nk = lengths->total_k;
  return fa_forward(ctx, &one, q, k, v, o, lse);
}

extern "C" int fa_forward_bias(assay_ctx* ctx, const fa_params* p, const fa_bias* shape,
                               const float* bias, const void* q, const void* k, const void* v,
                               void* o, float* lse) {
  std::vector<float> scaled(bias, bias + shape->B * shape->Hq * shape->Nq * shape->Nk);
  for (float& x : scaled) x *= p->scale;
  return naive_fa_forward_bias(ctx, p, shape, scaled.data(), q, k, v, o, lse);
}

extern "C" int fa_forward_fp8(assay_ctx* ctx, const fa_params* p, const float* scales,
                              const std::uint8_t* q, const std::uint8_t* k, const std::uint8_t* v,
                              void* o, float* lse) {
  const float without[] = {scales[0], scales[1], 1};
  return naive_fa_forward_fp8(ctx, p, without, q, k, v, o, lse);
}
