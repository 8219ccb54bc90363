// fails: mask_prefix_above_32_bits
// Positions are computed as ints.
#define dv_mask naive_dv_mask
#include "naive.cu"
#undef dv_mask

__global__ void narrow(std::int64_t n, std::int64_t* pos) {
  if (thread_index() < n) pos[thread_index()] = static_cast<std::int32_t>(pos[thread_index()]);
}

extern "C" int dv_mask(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu,
                       const int32_t* parent, int64_t ldm, uint64_t* bits, int32_t* depth,
                       int64_t* pos) {
  const int status = naive_dv_mask(ctx, B, P, cu, parent, ldm, bits, depth, pos);
  if (status != ASSAY_OK || B == 0 || cu[B] == 0) return status;
  narrow<<<blocks(cu[B]), kThreads, 0, stream_of(ctx)>>>(cu[B], pos);
  return launch_status();
}
