// fails: ragged_batch attention_gqa
// Cuts every item's prefix to the shortest of the batch, as a stacked tensor without padding would.
#define dv_attention naive_dv_attention
#include "naive.cpp"
#undef dv_attention

// The keys and values that remain are the last ones, so that the nodes stay where they are.
extern "C" int dv_attention(assay_ctx* ctx, const fa_params* p, const int64_t* P, const int64_t* cu,
                            const int32_t* parent, const void* q, const void* const* kc,
                            const void* const* vc, void* o, float* lse) {
  const int status = naive_dv_attention(ctx, p, P, cu, parent, q, kc, vc, o, lse);
  if (status != ASSAY_OK || p->B == 0 || has_null(p->B, kc)) return status;
  const std::int64_t shortest = *std::min_element(P, P + p->B);
  const std::int64_t row = p->Hkv * p->D * (p->dtype == ASSAY_F32 ? 4 : 2);
  const Scratch<std::int64_t> length(ctx, p->B);
  const Scratch<const void*> k(ctx, p->B), v(ctx, p->B);
  for (std::int64_t b = 0; b < p->B; ++b) {
    length[b] = shortest;
    k[b] = static_cast<const char*>(kc[b]) + (P[b] - shortest) * row;
    v[b] = static_cast<const char*>(vc[b]) + (P[b] - shortest) * row;
  }
  return naive_dv_attention(ctx, p, length.data(), cu, parent, q, k.data(), v.data(), o, lse);
}
