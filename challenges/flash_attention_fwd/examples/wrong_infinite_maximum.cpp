// fails: first_tile_masked nq_gt_nk
// Masked scores are -inf and nothing guards the first maximum of a row without keys: e^(-inf +
// inf).
#include "tiled.h"

struct Bug : Right {
  static constexpr float kEmptyLse = std::numeric_limits<float>::quiet_NaN();
};

TILED_FORWARD(Bug)
