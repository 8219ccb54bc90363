// How a modelled speed is shown.
#pragma once

#include "assay/results.h"

namespace assay {

// A modelled speed relative to the floor's: 1 cannot be beaten. Rows without the floor's speed were
// graded without a par, against the floor itself.
inline double share_of_floor(const ShapeSpeed& s) {
  return s.ratio_to_floor > 0 ? s.ratio_to_floor : s.ratio_to_par;
}

}  // namespace assay
