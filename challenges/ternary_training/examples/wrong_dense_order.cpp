// fails: pack_dense dense_random unpack_dense
// Five neighbours a byte, the lowest digit first, the plain number, and the scale in front.
#define tt_pack_dense naive_tt_pack_dense
#define tt_unpack_dense naive_tt_unpack_dense
#include "naive.cpp"
#undef tt_pack_dense
#undef tt_unpack_dense

extern "C" int tt_pack_dense(assay_ctx*, int64_t rows, int64_t cols, const uint8_t* blocks,
                             uint8_t* dense) {
  if (!valid_matrix(rows, cols, blocks, dense)) return ASSAY_EINVAL;
  for (Index i = 0; i < rows * cols / kBlock; ++i, blocks += kBytes, dense += kDenseBytes) {
    std::memset(dense, 0, kDenseBytes);
    std::memcpy(dense, blocks, 2);
    for (Index j = kBlock; j-- > 0;) {
      std::uint8_t& byte = dense[2 + j / 5];
      byte = static_cast<std::uint8_t>(byte * 3 + (blocks[2 + j / 4] >> (j % 4 * 2) & 3));
    }
  }
  return ASSAY_OK;
}

extern "C" int tt_unpack_dense(assay_ctx*, int64_t rows, int64_t cols, const uint8_t* dense,
                               uint8_t* blocks) {
  if (!valid_matrix(rows, cols, dense, blocks)) return ASSAY_EINVAL;
  for (Index i = 0; i < rows * cols / kBlock; ++i, blocks += kBytes, dense += kDenseBytes) {
    std::memset(blocks, 0, kBytes);
    std::memcpy(blocks, dense, 2);
    for (Index j = 0; j < kBlock; ++j) {
      int number = dense[2 + j / 5];
      for (Index k = 0; k < j % 5; ++k) number /= 3;
      blocks[2 + j / 4] = static_cast<std::uint8_t>(blocks[2 + j / 4] | number % 3 << (j % 4 * 2));
    }
  }
  return ASSAY_OK;
}
