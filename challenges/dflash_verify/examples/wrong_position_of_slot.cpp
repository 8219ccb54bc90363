// fails: mask_positions mask_wide_256 mask_ragged
// Gives a node the position of its slot, P + i, and not that of its depth; a model without positions hides
// it.
#define dv_mask naive_dv_mask
#include "naive.cpp"
#undef dv_mask

extern "C" int dv_mask(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu,
                       const int32_t* parent, int64_t ldm, uint64_t* bits, int32_t* depth,
                       int64_t* pos) {
  const int status = naive_dv_mask(ctx, B, P, cu, parent, ldm, bits, depth, pos);
  for (std::int32_t b = 0; status == ASSAY_OK && b < B; ++b) {
    for (std::int64_t i = cu[b]; i < cu[b + 1]; ++i) pos[i] = P[b] + i - cu[b];
  }
  return status;
}
