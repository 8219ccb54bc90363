// fails: mask_positions mask_deep_256
// Counts depth from the root as 1 and forgets to take that 1 off the position.
#define dv_mask naive_dv_mask
#include "naive.cpp"
#undef dv_mask

extern "C" int dv_mask(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu,
                       const int32_t* parent, int64_t ldm, uint64_t* bits, int32_t* depth,
                       int64_t* pos) {
  const int status = naive_dv_mask(ctx, B, P, cu, parent, ldm, bits, depth, pos);
  for (std::int32_t b = 0; status == ASSAY_OK && b < B; ++b) {
    for (std::int64_t i = cu[b]; i < cu[b + 1]; ++i) pos[i] = P[b] + depth[i];
  }
  return status;
}
