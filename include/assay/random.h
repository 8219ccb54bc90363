// Deterministic random numbers for inputs. Counter-based: any element can be computed alone, large
// buffers fill in parallel, and a seed gives the same bytes on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace assay {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): a bijection with full avalanche.
constexpr std::uint64_t mix64(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// A seed for a sub-stream: independent of its parent and of other streams.
constexpr std::uint64_t substream(std::uint64_t seed, std::uint64_t stream) {
  return mix64(mix64(seed + 0x9e3779b97f4a7c15ull) ^ mix64(stream + 0xd1b54a32d192ed03ull));
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() { return mix64(state_ += 0x9e3779b97f4a7c15ull); }
  // Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  double uniform(double lo, double hi) { return lo + (hi - lo) * uniform(); }
  // Uniform in [0, n), n >= 1. The bias is below n / 2^64.
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(
        (static_cast<unsigned __int128>(next()) * static_cast<std::uint64_t>(n)) >> 64);
  }
  double normal();  // N(0, 1), Box-Muller

 private:
  std::uint64_t state_;
};

// Shuffles the values; every order is equally likely (Fisher, Yates).
template <class Values>
void shuffle(Values& values, Random& random) {
  for (std::size_t i = values.size(); i > 1; --i) {
    std::swap(values[i - 1],
              values[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  }
}

// Fills with approximately N(mean, sigma^2): a sum of four 16-bit uniforms, so |x - mean| is below
// 3.47 sigma. Fast (about 1 ns per element and core); use Random::normal where tails matter.
void fill_normal(std::span<float> out, std::uint64_t seed, float mean = 0, float sigma = 1);
void fill_uniform(std::span<float> out, std::uint64_t seed, float lo, float hi);
// The same values rounded to bfloat16.
void fill_normal_bf16(std::span<std::uint16_t> out, std::uint64_t seed, float mean = 0,
                      float sigma = 1);

}  // namespace assay
