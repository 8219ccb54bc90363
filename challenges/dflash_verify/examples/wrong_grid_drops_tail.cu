// fails: full_mask_basic prompt_leak
// The grid of the whole mask has only full blocks of threads: the rows after them are not written.
#define dv_full_mask naive_dv_full_mask
#include "naive.cu"
#undef dv_full_mask

extern "C" int dv_full_mask(assay_ctx* ctx, int64_t P, int64_t n, const int32_t* parent,
                            uint8_t* M) {
  if (P < 1 || n < 0 || M == nullptr) return ASSAY_EINVAL;
  const std::int64_t side = P + n, whole = side / kThreads * kThreads;
  const DeviceArray<std::uint8_t> complete(ctx, side * side);
  if (!complete) return ASSAY_ENOMEM;
  const int status = naive_dv_full_mask(ctx, P, n, parent, complete.data());
  if (status != ASSAY_OK || whole == 0) return status;
  cudaMemcpyAsync(M, complete.data(), static_cast<std::size_t>(whole * side),
                  cudaMemcpyDeviceToDevice, stream_of(ctx));
  return launch_status();
}
