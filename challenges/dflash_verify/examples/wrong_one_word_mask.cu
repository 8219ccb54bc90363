// fails: mask_deep_256 mask_wide_256 mask_n_1000
// Ancestors in one 64-bit word, the rest of the row left empty: fine up to 64 nodes.
#define dv_mask naive_dv_mask
#include "naive.cu"
#undef dv_mask

__global__ void keep_first_words(std::int64_t rows, std::int64_t ldm, std::uint64_t* bits) {
  if (thread_index() >= rows) return;
  for (std::int64_t w = 1; w < ldm; ++w) bits[thread_index() * ldm + w] = 0;
}

extern "C" int dv_mask(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu,
                       const int32_t* parent, int64_t ldm, uint64_t* bits, int32_t* depth,
                       int64_t* pos) {
  const int status = naive_dv_mask(ctx, B, P, cu, parent, ldm, bits, depth, pos);
  if (status != ASSAY_OK || B == 0 || cu[B] == 0) return status;
  keep_first_words<<<blocks(cu[B]), kThreads, 0, stream_of(ctx)>>>(cu[B], ldm, bits);
  return launch_status();
}
