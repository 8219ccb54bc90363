// How values become codes of 8 or 4 bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/scale.h"

namespace {

struct Coder {
  explicit Coder(Scale s) : low(widen(s.low)) {
    const float step = widen(s.step);
    inverse = step > 0 ? 1 / step : 0;
  }
  int operator()(float x, int levels) const {
    return std::clamp(static_cast<int>(std::lrint((x - low) * inverse)), 0, levels);
  }
  float low, inverse;
};

}  // namespace
