// fails: nq_gt_nk nk0
// Rows without keys report lse = +inf, as some libraries once did.
#include "tiled.h"

struct Bug : Right {
  static constexpr float kEmptyLse = kInf;
};

TILED_FORWARD(Bug)
