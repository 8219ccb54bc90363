// What a modelled speed is shown by.
#pragma once

#include "assay/results.h"

namespace assay {

// A modelled speed relative to the floor's: 1 is what nothing beats. Rows that do not know the
// floor's were graded without a par, by the floor itself.
inline double share_of_floor(const ShapeSpeed& s) {
  return s.ratio_to_floor > 0 ? s.ratio_to_floor : s.ratio_to_par;
}

}  // namespace assay
