// Tables by name. Names come from PTX of unknown origin, so they are hashed with a key that differs
// between processes: otherwise a text made for collisions could make look-ups linear and parsing
// quadratic. Nothing may depend on the order of such a table.
//
// SipHash is by J.-P. Aumasson and D. J. Bernstein ("SipHash: a fast short-input PRF", 2012), here
// with one round per word and three at the end, as is usual for hash tables.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>

namespace assay::sim::ptx {

struct SipKey {
  std::uint64_t low = 0, high = 0;
};

template <int kRounds, int kFinalRounds>
inline std::uint64_t siphash(const SipKey& key, std::string_view text) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t a = key.low ^ 0x736f6d6570736575u, b = key.high ^ 0x646f72616e646f6du,
                c = key.low ^ 0x6c7967656e657261u, d = key.high ^ 0x7465646279746573u;
  const auto rounds = [&](int n) {
    for (int i = 0; i < n; ++i) {
      a += b;
      c += d;
      b = std::rotl(b, 13) ^ a;
      d = std::rotl(d, 16) ^ c;
      a = std::rotl(a, 32) + d;
      c += b;
      b = std::rotl(b, 17) ^ c;
      d = std::rotl(d, 21) ^ a;
      c = std::rotl(c, 32);
    }
  };
  const auto take = [&](std::uint64_t word) {
    d ^= word;
    rounds(kRounds);
    a ^= word;
  };
  std::uint64_t last = std::uint64_t{text.size()} << 56;
  for (; text.size() >= 8; text.remove_prefix(8)) {
    std::uint64_t word;
    std::memcpy(&word, text.data(), sizeof word);
    take(word);
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    last |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
  }
  take(last);
  c ^= 0xff;
  rounds(kFinalRounds);
  return a ^ b ^ c ^ d;
}

const SipKey& process_key();  // drawn by the operating system at process start

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const { return siphash<1, 3>(process_key(), text); }
};

template <class Value>
using TextTable = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;
template <class Value>
using ViewTable = std::unordered_map<std::string_view, Value, TextHash, std::equal_to<>>;

}  // namespace assay::sim::ptx
