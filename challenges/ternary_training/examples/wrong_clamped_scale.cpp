// fails: tiny_group subnormal_scale zero_group
// The scale is at least 1e-5, against division by zero.
#define tt_quantize naive_tt_quantize
#include "naive.cpp"
#undef tt_quantize

extern "C" int tt_quantize(assay_ctx* ctx, int64_t rows, int64_t cols, const float* w,
                           uint8_t* blocks) {
  const int status = naive_tt_quantize(ctx, rows, cols, w, blocks);
  if (status != ASSAY_OK) return status;
  for (Index i = 0; i < rows * cols / kBlock; ++i) {
    std::uint8_t* block = blocks + i * kBytes;
    const float* v = w + i * kBlock;
    double s = 0;
    for (Index j = 0; j < kBlock; ++j) s += std::abs(static_cast<double>(v[j])) / kBlock;
    const unsigned bits = half_from(s = std::max(s, 1e-5));
    block[0] = static_cast<std::uint8_t>(bits);
    block[1] = static_cast<std::uint8_t>(bits >> 8);
    for (Index j = 0; j < kBlock; ++j) {
      const int code = std::abs(v[j]) > s / 2 ? (v[j] > 0 ? 2 : 0) : 1,
                shift = static_cast<int>(j % 4 * 2);
      block[2 + j / 4] =
          static_cast<std::uint8_t>((block[2 + j / 4] & ~(3 << shift)) | code << shift);
    }
  }
  return ASSAY_OK;
}
