// fails: half_way huge
// fp64 to fp32 to binary16, which rounds twice, and infinity from 65520.
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
    const float once = static_cast<float>(s);
    const unsigned bits = s >= 65520 ? 0x7c00 : half_from(once);
    block[0] = static_cast<std::uint8_t>(bits);
    block[1] = static_cast<std::uint8_t>(bits >> 8);
  }
  return ASSAY_OK;
}
