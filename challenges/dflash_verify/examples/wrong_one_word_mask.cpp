// fails: mask_deep_256 mask_wide_256 mask_n_1000
// Ancestors in one 64-bit word, the rest of the row left empty: fine up to 64 nodes.
#define dv_mask naive_dv_mask
#include "naive.cpp"
#undef dv_mask

extern "C" int dv_mask(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu,
                       const int32_t* parent, int64_t ldm, uint64_t* bits, int32_t* depth,
                       int64_t* pos) {
  const int status = naive_dv_mask(ctx, B, P, cu, parent, ldm, bits, depth, pos);
  for (std::int32_t b = 0; status == ASSAY_OK && b < B; ++b) {
    for (std::int64_t i = cu[b]; i < cu[b + 1]; ++i) {
      std::fill(bits + i * ldm, bits + (i + 1) * ldm, 0);
      for (std::int64_t a = i - cu[b]; a >= 0; a = parent[cu[b] + a]) {
        bits[i * ldm] |= std::uint64_t{1} << (a % 64);
      }
    }
  }
  return status;
}
