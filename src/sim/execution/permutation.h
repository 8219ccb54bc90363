// A permutation of 0 .. n-1 drawn from a seed, without storing it: a Feistel network on the next
// power of four, walked until it lands below n (Black and Rogaway, "Ciphers with Arbitrary Finite
// Domains", 2002).
#pragma once

#include <bit>
#include <cstdint>

namespace assay::sim {

class Permutation {
 public:
  // seed 0: the identity. n >= 1.
  Permutation(std::uint64_t n, std::uint64_t seed)
      : n_(n), seed_(seed), half_bits_((static_cast<unsigned>(std::bit_width(n - 1)) + 1) / 2) {
    if (half_bits_ == 0) half_bits_ = 1;
  }

  std::uint64_t operator()(std::uint64_t i) const {
    if (seed_ == 0) return i;
    do i = once(i);
    while (i >= n_);
    return i;
  }

 private:
  static constexpr std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  std::uint64_t once(std::uint64_t i) const {
    const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
    std::uint64_t left = i >> half_bits_, right = i & mask;
    for (std::uint64_t round = 1; round <= 4; ++round) {
      const std::uint64_t next = left ^ (mix(right ^ mix(seed_ + round)) & mask);
      left = right;
      right = next;
    }
    return (left << half_bits_) | right;
  }

  std::uint64_t n_, seed_;
  unsigned half_bits_;
};

}  // namespace assay::sim
