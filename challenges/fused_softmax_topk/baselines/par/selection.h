// The best K of a row: candidates as integer keys, a bound that K of them exceed, and their buffer.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>

#include "vectors.h"

namespace {

// Integers in the order of floats. -0 becomes +0.
std::uint32_t ordered(float f) {
  const auto bits = std::bit_cast<std::uint32_t>(f + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
float from_ordered(std::uint32_t u) {
  return std::bit_cast<float>((u & 0x80000000u) != 0 ? u & 0x7fffffffu : ~u);
}

// A candidate: larger values first, then lower indices.
using Key = std::uint64_t;
constexpr int kKeys = kLanes / 2;
typedef Key VecK __attribute__((vector_size(8 * kKeys)));
Key key(float value, std::int64_t index) {
  return static_cast<Key>(ordered(value)) << 32 | ~static_cast<std::uint32_t>(index);
}
float value_of(Key k) { return from_ordered(static_cast<std::uint32_t>(k >> 32)); }
std::int32_t index_of(Key k) { return static_cast<std::int32_t>(~static_cast<std::uint32_t>(k)); }

// A value that at least `wanted` of the lanes exceed, hardly more than that if the values allow; at
// least `low`, which is returned when fewer exceed it. No lane exceeds `high`.
float bound_below(const Vec* maxima, std::int64_t n, std::int32_t wanted, float low, float high) {
  const auto exceeding = [&](float f) {
    std::int32_t count = 0;
    for (std::int64_t i = 0; i < n; ++i) count += std::popcount(greater(maxima[i], f));
    return count;
  };
  Vec least = -maxima[0];
  for (std::int64_t i = 1; i < n; ++i) least = larger(-maxima[i], least);
  // Every lane exceeds what stands two below the least; one below +0 stands -0, which is equal.
  std::uint32_t a = std::max(ordered(low), ordered(-horizontal_max(least)) - 2), b = ordered(high);
  for (int step = 0; step < 32 && b > a + 1; ++step) {
    const std::uint32_t middle = a + (b - a) / 2;
    const std::int32_t count = exceeding(from_ordered(middle));
    (count >= wanted ? a : b) = middle;
    if (count >= wanted && count <= wanted + wanted / 8) break;
  }
  return from_ordered(a);
}

#if defined(__AVX2__) && !defined(__AVX512F__)
// The places of the set bits of a byte, a byte each.
constexpr std::array<std::uint64_t, 256> kSetBits = [] {
  std::array<std::uint64_t, 256> all{};
  for (unsigned mask = 0; mask < 256; ++mask) {
    int count = 0;
    for (unsigned bit = 0; bit < 8; ++bit) {
      if ((mask >> bit & 1) != 0) all[mask] |= std::uint64_t{bit} << (8 * count++);
    }
  }
  return all;
}();
#endif

// Writes first + i for every set bit i and returns how many there are; up to kLanes values after
// those may be overwritten.
std::size_t list_lanes(std::uint32_t mask, std::int32_t first, std::int32_t* out) {
#if defined(__AVX512F__)
  const __m512i all =
      _mm512_add_epi32(_mm512_set1_epi32(first),
                       _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  _mm512_storeu_si512(out, _mm512_maskz_compress_epi32(static_cast<__mmask16>(mask), all));
#elif defined(__AVX2__)
  const __m256i places =
      _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(kSetBits[mask])));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                      _mm256_add_epi32(_mm256_set1_epi32(first), places));
#else
  std::int32_t* next = out;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1)
    *next++ = first + std::countr_zero(rest);
#endif
  return static_cast<std::size_t>(std::popcount(mask));
}

// The best K of what was offered.
class TopK {
 public:
  TopK(Key* buffer, std::int32_t K) : buffer_(buffer), k_(K), capacity_(capacity(K)) {}

  static std::size_t capacity(std::int32_t K) { return 2 * static_cast<std::size_t>(K) + kGroup; }

  // Selects from n groups, n <= kBatchGroups, given their maxima; `group(i)` gives the elements of
  // group i.
  template <class Group>
  void offer(const Vec* maxima, std::int64_t n, std::int64_t first, float max, Group group) {
    raise_threshold(maxima, n, max);
    for (std::int64_t i = 0; i < n; i += kBlockGroups) {
      offer_block(maxima, i, std::min(i + kBlockGroups, n), first, group);
    }
  }

  std::size_t finish() {
    if (size_ <= kMostRanked) return rank();
    if (size_ > static_cast<std::size_t>(k_)) shrink();
    std::sort(buffer_, buffer_ + size_, std::greater<>());
    return size_;
  }

 private:
  void raise_threshold(const Vec* maxima, std::int64_t n, float max) {
    constexpr std::int64_t kMost = 128;
    const std::int64_t subsets = std::min<std::int64_t>(kMost, (2 * k_ + kLanes - 1) / kLanes);
    if (n < subsets || k_ > kMost * kLanes || !(max > threshold_)) return;
    Vec folded[kMost];
    for (std::int64_t j = 0; j < subsets; ++j) {
      Vec m = maxima[j];
      for (std::int64_t i = j + subsets; i < n; i += subsets) m = larger(maxima[i], m);
      folded[j] = m;
    }
    threshold_ = bound_below(folded, subsets, k_, threshold_, max);
  }

  // Where a lane of a group's maxima exceeds the threshold, some of the eight elements that it
  // stands for do. The lanes are listed first, without branches that depend on the data.
  template <class Group>
  void offer_block(const Vec* maxima, std::int64_t begin, std::int64_t end, std::int64_t first,
                   Group group) {
    std::int32_t lanes[(kBlockGroups + 1) * kLanes];
    std::size_t count = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      count += list_lanes(greater(maxima[i], threshold_), static_cast<std::int32_t>(i * kLanes),
                          lanes + count);
    }
    const float* x = nullptr;
    std::int64_t last = -1;
    for (std::size_t h = 0; h < count; ++h) {
      const std::int64_t i = lanes[h] / kLanes, lane = lanes[h] % kLanes;
      if (i != last) {
        x = group(last = i);
        threshold_ = std::max(threshold_, worst_kept_);
      }
      offer_lane(x, lane, first + i * kGroup);
    }
    threshold_ = std::max(threshold_, worst_kept_);
  }

  void offer_lane(const float* x, std::int64_t lane, std::int64_t first) {
    std::uint32_t mask = 0;
    for (int i = 0; i < kGroupVectors; ++i) {
      mask |= static_cast<std::uint32_t>(x[lane + i * kLanes] > threshold_) << i;
    }
    for (; mask != 0; mask &= mask - 1) {
      const std::int64_t at = lane + std::countr_zero(mask) * kLanes;
      buffer_[size_++] = key(x[at], first + at);
    }
    if (size_ + kGroupVectors > capacity_) shrink();
  }

  // Sorts by counting, for each candidate, those before it: quadratic, but a vector at a time.
  std::size_t rank() {
    Key sorted[kMostRanked];
    std::fill(buffer_ + size_, buffer_ + (size_ + kKeys - 1) / kKeys * kKeys, Key{0});
    for (std::size_t i = 0; i < size_; ++i) {
      VecK before{};
      for (std::size_t j = 0; j < size_; j += kKeys) {
        VecK others;
        std::memcpy(&others, buffer_ + j, sizeof others);
        before -= std::bit_cast<VecK>(others > buffer_[i]);
      }
      Key place = 0;
      for (int l = 0; l < kKeys; ++l) place += before[l];
      sorted[place] = buffer_[i];
    }
    size_ = std::min(size_, static_cast<std::size_t>(k_));
    std::copy(sorted, sorted + size_, buffer_);
    return size_;
  }

  void shrink() {
    std::nth_element(buffer_, buffer_ + k_ - 1, buffer_ + size_, std::greater<>());
    size_ = static_cast<std::size_t>(k_);
    worst_kept_ = std::max(worst_kept_, value_of(buffer_[k_ - 1]));
  }

  static constexpr std::size_t kMostRanked = 512;

  Key* buffer_;
  std::int32_t k_;
  std::size_t capacity_, size_ = 0;
  float threshold_ = -kInf;  // every later candidate must exceed it
  // K candidates are at least so large. It becomes the threshold with the next group: in the same
  // one, whose lanes are not in the order of columns, an equal logit may still have a lower index.
  float worst_kept_ = -kInf;
};

}  // namespace
