#include "mutate/lexemes.h"

#include <gtest/gtest.h>

#include <string>

namespace assay::mutate {
namespace {

std::string cut(std::string_view source) {
  std::string text;
  for (const Lexeme& l : lexemes_of(source))
    text += (text.empty() ? "" : " ") + std::string(l.text);
  return text;
}

TEST(Lexemes, JoinOperatorsAndNumbers) {
  EXPECT_EQ(cut("a<=b>>=1;c+++d"), "a <= b >>= 1 ; c ++ + d");
  EXPECT_EQ(cut("1.5e-3f+.5-0x1.8p+2*1'000u"), "1.5e-3f + .5 - 0x1.8p+2 * 1'000u");
  EXPECT_EQ(cut("0xe-1"), "0xe - 1") << "no exponent";
  EXPECT_EQ(cut("a ? b : c::d->e"), "a ? b : c :: d -> e");
}

TEST(Lexemes, LeaveCommentsAndDirectivesOutAndStringsWhole) {
  EXPECT_EQ(cut("#include <a/b.h>\n#define N \\\n  1 + 2\nx; // 1 + 1\n/* y */ f(\"1 + 1\", '+');"),
            "x ; f ( \"1 + 1\" , '+' ) ;");
  const auto lexemes = lexemes_of("a;\n#if 1\nb;\n#endif\n");
  ASSERT_EQ(lexemes.size(), 4u);
  EXPECT_FALSE(lexemes[0].after_directive);
  EXPECT_TRUE(lexemes[2].after_directive);
  EXPECT_FALSE(lexemes[3].after_directive);
}

TEST(Lexemes, KnowTheirPlace) {
  const std::string source = "int a;\nreturn a <= 1.5;";
  const auto lexemes = lexemes_of(source);
  for (const Lexeme& l : lexemes) EXPECT_EQ(source.substr(l.begin, l.text.size()), l.text);
  EXPECT_EQ(lexemes[5].text, "<=");
  EXPECT_EQ(lexemes[5].line, 2u);
  EXPECT_TRUE(lexemes[5].is_binary());
}

TEST(Lexemes, TellOperatorsFromBracketsAndPointersBySpaces) {
  int binary = 0;
  for (const Lexeme& l : lexemes_of("const std::vector<int>& v = f(-1, *p, &q); a < b; c * d;"))
    binary += l.is_binary() && !l.is("=");
  EXPECT_EQ(binary, 2);
}

TEST(Lexemes, BracketsHavePartners) {
  const auto partners = partners_of(lexemes_of("f(a[1], {2})"));  // f ( a [ 1 ] , { 2 } )
  EXPECT_EQ(partners[1], 10u);
  EXPECT_EQ(partners[10], 1u);
  EXPECT_EQ(partners[3], 5u);
  EXPECT_EQ(partners[7], 9u);
  EXPECT_EQ(partners[0], 0u);
  EXPECT_EQ(partners_of(lexemes_of(")(")), (std::vector<std::size_t>{0, 1})) << "none";
}

}  // namespace
}  // namespace assay::mutate
