// fails: strided_bshd padded_rows
// Arrays are taken for contiguous [B, H, N, D]; the strides are ignored.
#include "pairs.h"

struct Bug : Right {
  static std::int64_t at(const assay_stride&, std::int64_t matrix, std::int64_t, std::int64_t N,
                         std::int64_t D) {
    return matrix * N * D;
  }
  static std::int64_t row(const assay_stride&, std::int64_t D) { return D; }
};

PAIRWISE_BACKWARD(Bug)
