// bfloat16, and a range of values that becomes codes of 8 or 4 bits.
#pragma once

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

// A range of values as code * step + low; both factors are stored as bfloat16, and the codes are
// made with what is stored.
struct Scale {
  std::uint16_t step, low;
};

Scale scale_of(float low, float high, int levels) {
  std::uint16_t bottom = narrow(low);
  if (widen(bottom) > low) bottom = narrow(low - std::abs(low) / 128);
  return {narrow((high - widen(bottom)) / static_cast<float>(levels) * (1 + 1.0f / 256)), bottom};
}

}  // namespace
