// Shared by the tests of ternary training: a case drawn from a seed, and a decoder of blobs that is
// written from their description.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "challenges/challenge_fixture.h"
#include "trusted.h"

namespace assay::ternary_training {

using Vector = std::vector<double>;

inline const testing::ChallengeUnderTest& subject() {
  static const testing::ChallengeUnderTest loaded("ternary_training");
  return loaded;
}

class Drawn : public testing::Filled {
 public:
  Drawn(const CaseSpec& given, std::uint64_t seed) : Filled(subject(), given, seed) {}

  const TernReference& reference() const { return reference_as<TernReference>(); }
};

// Bits numbered as in the description: code j is bits 2j and 2j + 1 of the 256 after the scale.
inline Vector decode(const std::uint8_t* block) {
  const int exponent = block[1] >> 2 & 31, fraction = (block[1] & 3) * 256 + block[0];
  const double s = exponent == 0 ? fraction * std::pow(2.0, -24)
                                 : (1 + fraction / 1024.0) * std::pow(2.0, exponent - 15);
  Vector w;
  for (int bit = 0; bit < 256; bit += 2) {
    const int low = block[2 + bit / 8] >> bit % 8 & 1,
              high = block[2 + bit / 8] >> (bit % 8 + 1) & 1;
    w.push_back((low + 2 * high - 1) * s);
  }
  return w;
}

// All weights of a blob, in its order.
inline Vector decode_all(const tt_config& config, std::span<const std::uint8_t> blob) {
  const auto norms = static_cast<std::size_t>(config.L * (2 * config.d + 2 * config.hd) + config.d);
  Vector w;
  for (std::size_t at = 0; at < blob.size() - 4 * norms; at += 34) {
    for (const double v : decode(blob.data() + at)) w.push_back(v);
  }
  for (std::size_t i = 0; i < norms; ++i) {
    float v;
    std::memcpy(&v, blob.data() + blob.size() - 4 * (norms - i), 4);
    w.push_back(v);
  }
  return w;
}

}  // namespace assay::ternary_training
