// fails: pack_dense dense_random unpack_dense
// The right places, but bytes that hold the number itself instead of its share of 256, and no fifth
// digit in the last two.
#define tt_pack_dense naive_tt_pack_dense
#define tt_unpack_dense naive_tt_unpack_dense
#include "naive.cpp"
#undef tt_pack_dense
#undef tt_unpack_dense

extern "C" int tt_pack_dense(assay_ctx*, int64_t rows, int64_t cols, const uint8_t* blocks,
                             uint8_t* dense) {
  if (!valid_matrix(rows, cols, blocks, dense)) return ASSAY_EINVAL;
  for (Index i = 0; i < rows * cols / kBlock; ++i, blocks += kBytes, dense += kDenseBytes) {
    pack_dense_block(blocks, dense);
    for (Index k = 0; k < 26; ++k) {
      const int number = dense[k] * 243 / 256;
      dense[k] = static_cast<std::uint8_t>(k < 24 ? number : number / 3);
    }
  }
  return ASSAY_OK;
}

extern "C" int tt_unpack_dense(assay_ctx*, int64_t rows, int64_t cols, const uint8_t* dense,
                               uint8_t* blocks) {
  if (!valid_matrix(rows, cols, dense, blocks)) return ASSAY_EINVAL;
  for (Index i = 0; i < rows * cols / kBlock; ++i, blocks += kBytes, dense += kDenseBytes) {
    std::uint8_t shares[kDenseBytes];
    std::copy_n(dense, kDenseBytes, shares);
    for (Index k = 0; k < 26; ++k) {
      const int number = k < 24 ? dense[k] : dense[k] * 3;
      shares[k] = static_cast<std::uint8_t>((number * 256 + 242) / 243);
    }
    unpack_dense_block(shares, blocks);
  }
  return ASSAY_OK;
}
