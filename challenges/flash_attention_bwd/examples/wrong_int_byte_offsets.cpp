// fails: far_rows_in_bytes far_rows far_heads far_items
// Offsets are ints, of bytes: two gigabytes on they are negative.
#include "pairs.h"

struct Bug : Right {
  static std::int64_t wrapped(std::int64_t elements) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(elements * 4)) / 4;
  }
  static std::int64_t at(const assay_stride& s, std::int64_t matrix, std::int64_t H, std::int64_t,
                         std::int64_t) {
    return wrapped(matrix / H * s.b + matrix % H * s.h);
  }
  static std::int64_t row(const assay_stride& s, std::int64_t) { return wrapped(s.n); }
};

PAIRWISE_BACKWARD(Bug)
