// fails: far_heads far_items
// Where a head begins is an unsigned number of 32 bits, in elements.
#include "tiled.h"

struct Bug : Right {
  static std::int64_t at(const assay_stride& s, std::int64_t matrix, std::int64_t H, std::int64_t,
                         std::int64_t) {
    return static_cast<std::uint32_t>(matrix / H * s.b + matrix % H * s.h);
  }
};

TILED_FORWARD(Bug)
