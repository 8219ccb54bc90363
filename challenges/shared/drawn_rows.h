// The sizes of rows in timed inputs. If all rows were alike, a submission that knows this generator
// could skip work that other inputs need: the largest logit of a row, the mean that cancels, the
// search for a threshold. So sizes are drawn row by row, and some make that shortcut overflow or
// cancel.
#pragma once

#include <cmath>

#include "assay/random.h"

namespace assay {

// A factor for a row of N(0, 1) values: 0.5 to 1.5, and for one row in eight 4 to 8.
inline float drawn_scale(Random& random) {
  const bool large = random.below(8) == 0;
  return static_cast<float>(large ? std::exp2(random.uniform(2, 3)) : random.uniform(0.5, 1.5));
}

// An offset for every value of a row: up to `common`, and for one row in four 100 to 300, of either
// sign.
inline float drawn_level(Random& random, double common) {
  const bool large = random.below(4) == 0;
  const double size = large ? random.uniform(100, 300) : random.uniform(0, common);
  return static_cast<float>(random.below(2) == 0 ? size : -size);
}

}  // namespace assay
