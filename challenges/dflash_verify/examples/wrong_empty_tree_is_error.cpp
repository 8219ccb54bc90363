// fails: mask_n_0 mask_ragged
// Calls an item without nodes an error, although a draft may be empty.
#define dv_mask naive_dv_mask
#include "naive.cpp"
#undef dv_mask

extern "C" int dv_mask(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu,
                       const int32_t* parent, int64_t ldm, uint64_t* bits, int32_t* depth,
                       int64_t* pos) {
  for (std::int32_t b = 0; cu != nullptr && b < B; ++b) {
    if (cu[b + 1] == cu[b]) return ASSAY_EINVAL;
  }
  return naive_dv_mask(ctx, B, P, cu, parent, ldm, bits, depth, pos);
}
