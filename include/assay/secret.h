// Secrets that a submission must not be able to compute: seeds derived one way, and keyed hashes
// for whatever answers its questions. The mixing in random.h is invertible: one of its numbers
// reveals its whole stream and, with substream, the parent's too. Use random.h to make data, and
// this to make the seeds behind the data.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace assay {

// A seed for a purpose: 64 bits of a SHA-256 over the secret, the purpose and the number. It
// reveals neither the secret nor the seed for any other purpose.
std::uint64_t derive(std::uint64_t secret, std::string_view purpose, std::uint64_t number = 0);

// The seeds of one run of a case. A submission sees what is drawn from `inputs`. Nothing that it
// sees depends on `judging`, which picks what is judged if not everything is, and keys the models
// behind callbacks.
struct Seeds {
  std::uint64_t inputs = 0, judging = 0;

  // Implicit, since one seed is all that a replay needs.
  Seeds(std::uint64_t seed)  // NOLINT(google-explicit-constructor)
      : inputs(derive(seed, "inputs")), judging(derive(seed, "judging")) {}
};

// A pseudo-random function of two words (SipHash-2-4; Aumasson, Bernstein 2012). Without the seed
// its values look random, however many others are known. About 20 ns.
class KeyedHash {
 public:
  explicit KeyedHash(std::uint64_t seed = 0)
      : KeyedHash(derive(seed, "key", 0), derive(seed, "key", 1)) {}
  KeyedHash(std::uint64_t low, std::uint64_t high) : key_{low, high} {}

  std::uint64_t operator()(std::uint64_t a, std::uint64_t b = 0) const {
    std::uint64_t v0 = key_[0] ^ 0x736f6d6570736575ull, v1 = key_[1] ^ 0x646f72616e646f6dull,
                  v2 = key_[0] ^ 0x6c7967656e657261ull, v3 = key_[1] ^ 0x7465646279746573ull;
    const auto turn = [](std::uint64_t x, int by) { return x << by | x >> (64 - by); };
    const auto round = [&] {
      v0 += v1, v1 = turn(v1, 13) ^ v0, v0 = turn(v0, 32);
      v2 += v3, v3 = turn(v3, 16) ^ v2;
      v0 += v3, v3 = turn(v3, 21) ^ v0;
      v2 += v1, v1 = turn(v1, 17) ^ v2, v2 = turn(v2, 32);
    };
    for (const std::uint64_t word : {a, b, std::uint64_t{16} << 56}) {
      v3 ^= word;
      round(), round();
      v0 ^= word;
    }
    v2 ^= 0xff;
    round(), round(), round(), round();
    return v0 ^ v1 ^ v2 ^ v3;
  }

 private:
  std::array<std::uint64_t, 2> key_;
};

}  // namespace assay
