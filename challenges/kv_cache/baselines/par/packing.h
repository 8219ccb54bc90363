// bfloat16, and how a range of values becomes codes of 8 or 4 bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

float widen(std::uint16_t h) {
  const std::uint32_t bits = std::uint32_t{h} << 16;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

std::uint16_t narrow(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// A range of values as code * step + low. Both are stored as bfloat16, and codes are made with what
// is stored, so that the rounding of the two costs nothing but a little range.
struct Scale {
  std::uint16_t step, low;
};

Scale scale_of(float low, float high, float levels) {
  std::uint16_t bottom = narrow(low);
  if (widen(bottom) > low) bottom = narrow(low - std::abs(low) / 128);
  return {narrow((high - widen(bottom)) / levels * (1 + 1.0f / 256)), bottom};
}

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
