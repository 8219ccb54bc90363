// Which texels a texture fetch reads, and their weights: CUDA C++ Programming Guide 13.0, "Texture
// Fetching".
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "sim/texture.h"

namespace assay::sim {

// Along one dimension: one texel, or with linear filtering two and the weight of the second.
struct TexelPair {
  std::array<std::int64_t, 2> at{};  // kBorder: beyond the edge
  float second = 0;                  // 0 to 1 in steps of 1/256
  static constexpr std::int64_t kBorder = -1;
};

// The texel that a number from anywhere stands for.
inline std::int64_t at_edge(std::int64_t i, std::int64_t n, TextureDescriptor::Edge edge) {
  using enum TextureDescriptor::Edge;
  if (i >= 0 && i < n) return i;
  switch (edge) {
    case wrap: return ((i % n) + n) % n;
    case mirror: {
      const std::int64_t in_period = ((i % (2 * n)) + 2 * n) % (2 * n);
      return in_period < n ? in_period : 2 * n - 1 - in_period;
    }
    case border: return TexelPair::kBorder;
    default: return i < 0 ? 0 : n - 1;
  }
}

// floor(x) for any x; far beyond every texture's edge where it does not fit. NaN is 0.
inline std::int64_t texel_number(double x) {
  constexpr double kFar = 1ll << 40;
  if (std::isnan(x)) return 0;
  return static_cast<std::int64_t>(std::floor(std::fmin(std::fmax(x, -kFar), kFar)));
}

// `x`: the coordinate as the instruction has it.
inline TexelPair sample(double x, std::int64_t n, TextureDescriptor::Edge edge, bool normalized,
                        bool linear) {
  using enum TextureDescriptor::Edge;
  // Only normalized coordinates repeat.
  if (!normalized && (edge == wrap || edge == mirror)) edge = clamp;
  if (normalized) x *= static_cast<double>(n);
  TexelPair pair;
  if (!linear) {
    pair.at[0] = at_edge(texel_number(x), n, edge);
    return pair;
  }
  // A weight has 8 bits of fraction, so a coordinate is rounded to 1/256 of a texel.
  const double steps = std::nearbyint((x - 0.5) * 256);
  const std::int64_t first = texel_number(steps / 256);
  pair.at = {at_edge(first, n, edge), at_edge(first + 1, n, edge)};
  const double second = steps / 256 - static_cast<double>(first);
  pair.second = second >= 0 && second < 1 ? static_cast<float>(second) : 0.0f;
  return pair;
}

}  // namespace assay::sim
