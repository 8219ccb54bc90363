#include "assay/secret.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "util/sha256.h"

namespace assay {
namespace {

TEST(Derive, IsTheBeginningOfASha256) {
  std::string text = "assay";
  text += std::string("\x08\x07\x06\x05\x04\x03\x02\x01", 8) + "purpose";
  text += std::string("\x09\0\0\0\0\0\0\0", 8);
  EXPECT_EQ(derive(0x0102030405060708ull, "purpose", 9),
            std::stoull(sha256_hex(text).substr(0, 16), nullptr, 16));
}

TEST(Derive, SecretPurposeAndNumberAllCount) {
  std::set<std::uint64_t> seen;
  for (std::uint64_t secret = 0; secret < 10; ++secret) {
    for (const char* purpose : {"", "a", "b", "ab"}) {
      for (std::uint64_t number = 0; number < 10; ++number)
        seen.insert(derive(secret, purpose, number));
    }
  }
  EXPECT_EQ(seen.size(), 400u);
  EXPECT_EQ(derive(1, "a"), derive(1, "a", 0));
}

TEST(Seeds, WhatIsJudgedDoesNotFollowFromTheInputs) {
  const Seeds seeds(7);
  EXPECT_EQ(seeds.inputs, derive(7, "inputs"));
  EXPECT_EQ(seeds.judging, derive(7, "judging"));
  EXPECT_NE(seeds.inputs, seeds.judging);
}

// The authors' test vector: key 00 .. 0f, message 00 .. 0f.
TEST(KeyedHash, IsSipHash) {
  const KeyedHash hash(0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull);
  EXPECT_EQ(hash(0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull), 0x3f2acc7f57c29bdbull);
}

TEST(KeyedHash, HalfTheBitsChangeWithAnyBitOfKeyAndWords) {
  int flipped = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t one = std::uint64_t{1} << bit, plain = KeyedHash(5)(6, 7);
    flipped += std::popcount(plain ^ KeyedHash(5 ^ one)(6, 7));
    flipped += std::popcount(plain ^ KeyedHash(5)(6 ^ one, 7));
    flipped += std::popcount(plain ^ KeyedHash(5)(6, 7 ^ one));
  }
  EXPECT_NEAR(flipped, 3 * 64 * 32, 300);
}

}  // namespace
}  // namespace assay
