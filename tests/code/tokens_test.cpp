#include "code/tokens.h"

#include <gtest/gtest.h>

#include <string>

namespace assay::sources {
namespace {

// The tokens, separated by blanks; directives in <>, with ! if they never hold.
std::string cut(std::string_view source) {
  std::string text;
  for (const Token& t : tokens_of(source)) {
    const bool directive = t.kind == Token::Kind::directive;
    text += (text.empty() ? "" : " ") + std::string(directive ? "<" : "") + std::string(t.text) +
            (t.never ? "!" : "") + (directive ? ">" : "");
  }
  return text;
}

TEST(Tokens, AreWordsLiteralsAndSigns) {
  EXPECT_EQ(cut("int x=1.5f;//y\nf(\"a b\",'c')"), "int x = 1 . 5f ; f ( \"a b\" , 'c' )");
  EXPECT_EQ(cut("a::b->c&&d||e&f|g:h"), "a :: b -> c && d || e & f | g : h");
  EXPECT_EQ(cut("k<<<1,2>>>()"), "k < < < 1 , 2 > > > ( )");
}

TEST(Tokens, ADirectiveIsOneOverContinuedLines) {
  EXPECT_EQ(cut("# define A(x) { \\\n  x }\nb"), "<define> b");
  EXPECT_EQ(cut("#define A { \\\r\n }\r\nb"), "<define> b");
  EXPECT_EQ(cut("#include <a>\n#include \"b\"\nc"), "<include> <include> c");
  EXPECT_EQ(cut("#if 0\n#if 0 || A\n#if A\n#ifdef false\n#if false // no\n#elif 0\n"),
            "<if!> <if> <if> <ifdef> <if!> <elif>");
}

TEST(Tokens, KnowTheirLinesAndTheSpaceBeforeThem) {
  const auto tokens = tokens_of("a b/*\n*/c R\"(\n\n)\"d\n#x \\\n\ne");
  std::string seen;
  for (const Token& t : tokens) seen += std::to_string(t.line) + (t.spaced ? "s " : " ");
  EXPECT_EQ(seen, "1s 1s 2s 2s 4 5s 7s ");
}

}  // namespace
}  // namespace assay::sources
