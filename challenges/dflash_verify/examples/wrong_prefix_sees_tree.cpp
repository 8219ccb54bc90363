// fails: prompt_leak full_mask_basic
// Makes the columns of the tree visible to the prefix, whose keys and values then depend on drafts.
#define dv_full_mask naive_dv_full_mask
#include "naive.cpp"
#undef dv_full_mask

extern "C" int dv_full_mask(assay_ctx* ctx, int64_t P, int64_t n, const int32_t* parent,
                            uint8_t* M) {
  const int status = naive_dv_full_mask(ctx, P, n, parent, M);
  for (std::int64_t i = 0; status == ASSAY_OK && i < P; ++i) {
    std::fill_n(M + i * (P + n) + P, n, std::uint8_t{1});
  }
  return status;
}
