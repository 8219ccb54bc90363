// Bitmaps with one bit per byte of memory, lowest bit first, which several threads set and test
// concurrently. During that time bits are only ever set, so words are tested before they are
// written, and a full word is simply stored.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace assay::sim {

constexpr std::uint64_t low_bits(std::uint64_t n) {
  return n >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
}

inline void set_bits_of_word(std::uint64_t& word, std::uint64_t bits) {
  const std::atomic_ref<std::uint64_t> w(word);
  if ((w.load(std::memory_order_relaxed) & bits) == bits) return;
  if (bits == ~std::uint64_t{0}) {
    w.store(bits, std::memory_order_relaxed);
  } else {
    w.fetch_or(bits, std::memory_order_relaxed);
  }
}

// Calls f(word index, bits of the word) for the words of [begin, begin + count).
template <class F>
inline void for_bit_words(std::uint64_t begin, std::uint64_t count, F&& f) {
  std::uint64_t word = begin / 64, shift = begin % 64;
  while (count != 0) {
    const std::uint64_t n = std::min(64 - shift, count);
    f(word++, low_bits(n) << shift);
    count -= n;
    shift = 0;
  }
}

inline void set_bits(std::uint64_t* map, std::uint64_t begin, std::uint64_t count) {
  for_bit_words(begin, count,
                [&](std::uint64_t w, std::uint64_t bits) { set_bits_of_word(map[w], bits); });
}

inline bool all_bits(std::uint64_t* map, std::uint64_t begin, std::uint64_t count) {
  bool all = true;
  for_bit_words(begin, count, [&](std::uint64_t w, std::uint64_t bits) {
    const std::atomic_ref<std::uint64_t> word(map[w]);
    all &= (word.load(std::memory_order_relaxed) & bits) == bits;
  });
  return all;
}

}  // namespace assay::sim
