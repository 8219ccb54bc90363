// fails: quantize pack_bytes
// A byte's codes are packed from its high bits.
#define tt_quantize naive_tt_quantize
#include "naive.cu"
#undef tt_quantize

__global__ void reverse_codes(std::int64_t n, std::uint8_t* blocks) {
  if (thread_index() >= n) return;
  std::uint8_t* const block = blocks + thread_index() * kBytes;
  for (int i = 2; i < kBytes; ++i) {
    const int x = block[i];
    block[i] = static_cast<std::uint8_t>((x & 3) << 6 | (x & 12) << 2 | (x >> 2 & 12) | x >> 6);
  }
}

extern "C" int tt_quantize(assay_ctx* ctx, std::int64_t rows, std::int64_t cols, const float* w,
                           std::uint8_t* blocks) {
  const int status = naive_tt_quantize(ctx, rows, cols, w, blocks);
  const std::int64_t n = rows * cols / kBlock;
  if (status != ASSAY_OK || n == 0) return status;
  reverse_codes<<<threads(n), kThreads, 0, stream_of(ctx)>>>(n, blocks);
  return launch_status();
}
