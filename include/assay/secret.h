// What a submission must not be able to compute: seeds that are derived one way, and keyed hashes
// for whatever answers its questions. random.h's mixing is invertible: who sees one of its numbers
// knows all of that stream, and with substream the parent's too. It makes data; what data are made
// from comes from here.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace assay {

// A seed for a purpose: 64 bits of a SHA-256 over the secret, the purpose and the number. Neither
// the secret nor a seed for anything else follows from it.
std::uint64_t derive(std::uint64_t secret, std::string_view purpose, std::uint64_t number = 0);

// What one run of a case is drawn from. A submission sees what was drawn from `inputs`; nothing
// that it sees depends on `judging`, which chooses what is judged where not everything is, and is
// the key of models behind callbacks.
struct Seeds {
  std::uint64_t inputs = 0, judging = 0;

  // From one seed without a word, since that is all that a replay needs.
  Seeds(std::uint64_t seed)  // NOLINT(google-explicit-constructor)
      : inputs(derive(seed, "inputs")), judging(derive(seed, "judging")) {}
};

// A pseudo-random function of two words (SipHash-2-4; Aumasson, Bernstein 2012): whoever does not
// know the seed cannot tell its values from chance, however many others he has seen. About 20 ns.
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
