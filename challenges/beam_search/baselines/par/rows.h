// The rows of the model, in blocks of values: which blocks hold one above a limit, and halves as
// floats.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>

#include "shared/baselines/lanes.h"

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr std::int32_t kBlock = 256;
static_assert(kBlock % (4 * kLanes) == 0, "any_above reads four vectors at a time");

// Whether any of kBlock values exceeds the limit.
bool any_above(const float* x, float limit) {
  Vec a = load(x), b = load(x + kLanes), c = load(x + 2 * kLanes), d = load(x + 3 * kLanes);
  for (int i = 4 * kLanes; i < kBlock; i += 4 * kLanes) {
    a = larger(a, load(x + i));
    b = larger(b, load(x + i + kLanes));
    c = larger(c, load(x + i + 2 * kLanes));
    d = larger(d, load(x + i + 3 * kLanes));
  }
  const auto above = larger(larger(a, b), larger(c, d)) > (limit - Vec{});
  std::uint64_t words[sizeof above / 8];
  std::memcpy(words, &above, sizeof above);
  std::uint64_t any = 0;
  for (const std::uint64_t word : words) any |= word;
  return any != 0;
}

// Rows by blocks of at most kBlock values; halves are widened into a buffer in the cache.
struct FloatRow {
  const float* x;
  const float* block(std::int32_t begin, std::int32_t, float*) const { return x + begin; }
};

struct Bf16Row {
  const std::uint16_t* x;
  const float* block(std::int32_t begin, std::int32_t n, float* to) const {
    for (std::int32_t i = 0; i < n; ++i)
      to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(x[begin + i]) << 16);
    return to;
  }
};

// The bits of an f16 at their place in a float are the value times 2^-112, subnormal ones included;
// infinities stand apart.
struct F16Row {
  const std::uint16_t* x;
  const float* block(std::int32_t begin, std::int32_t n, float* to) const {
    for (std::int32_t i = 0; i < n; ++i) {
      const std::uint32_t h = x[begin + i], magnitude = h & 0x7fff;
      const auto finite =
          std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f);
      const std::uint32_t special = 0x7f800000u | magnitude << 13;
      to[i] = std::bit_cast<float>((magnitude < 0x7c00 ? finite : special) | (h & 0x8000) << 16);
    }
    return to;
  }
};

}  // namespace
