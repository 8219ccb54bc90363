#include "code/pieces.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace assay::sources {
namespace {

// The pieces, each with the letter of its part.
std::string cut(std::string_view source) {
  std::string text;
  for (const Piece& piece : pieces_of(source)) {
    text += "pkcld"[static_cast<int>(piece.part)];
    text += '[' + std::string(piece.text) + ']';
  }
  return text;
}

TEST(Pieces, AreTheParts) {
  EXPECT_EQ(cut("int x=1; // one"), "k[int]p[ x=1; ]c[// one]");
  EXPECT_EQ(cut("#define A \"b\"\n"), "d[#define]p[ A ]l[\"b\"]p[\n]");
}

TEST(Pieces, ARawStringNeedsItsBracketWithinTheLongestDelimiter) {
  EXPECT_EQ(cut("R\"0123456789abcdef(\")0123456789abcdef\";"),
            "l[R\"0123456789abcdef(\")0123456789abcdef\"]p[;]");
  EXPECT_EQ(cut("R\"0123456789abcdefg(\";"), "l[R\"0123456789abcdefg(\"]p[;]");
}

TEST(Pieces, MakeUpTheText) {
  constexpr std::string_view kAlphabet("\"'\\/*#R(x)\n \0\xff<&u8int1.e+-", 26);
  std::mt19937 random(3);
  for (int i = 0; i < 3000; ++i) {
    std::string source, together;
    for (std::size_t n = random() % 40; n > 0; --n)
      source += kAlphabet[random() % kAlphabet.size()];
    for (const Piece& piece : pieces_of(source)) {
      EXPECT_FALSE(piece.text.empty());
      together += piece.text;
    }
    ASSERT_EQ(together, source);
  }
}

}  // namespace
}  // namespace assay::sources
