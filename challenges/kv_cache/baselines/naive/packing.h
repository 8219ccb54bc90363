// How values become codes of 8 or 4 bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "common/scale.h"

namespace {

int encode(float x, Scale s, int levels) {
  const float step = widen(s.step);
  if (!(step > 0)) return 0;
  return std::clamp(static_cast<int>(std::lround((x - widen(s.low)) / step)), 0, levels);
}

float decode(int code, Scale s) { return static_cast<float>(code) * widen(s.step) + widen(s.low); }

}  // namespace
