#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>

#include "sim/ptx/lexer.h"
#include "sim/ptx/parser.h"

namespace assay::sim::ptx {
namespace {

using Kind = Token::Kind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> texts(std::string_view text) {
  std::vector<std::string> out;
  Lexer lexer(text);
  for (Token token = lexer.next(); token.kind != Kind::end; token = lexer.next()) {
    out.emplace_back(token.text);
  }
  return out;
}

Token only(std::string_view text) {
  Lexer lexer(text);
  const Token token = lexer.next();
  EXPECT_EQ(lexer.next().kind, Kind::end) << text;
  return token;
}

std::string error_of(std::string_view text) {
  try {
    texts(text);
  } catch (const ParseError& e) {
    return std::to_string(e.line) + ":" + std::to_string(e.column) + " " + e.what();
  }
  return "no error";
}

TEST(PtxLexer, SplitsAnInstruction) {
  EXPECT_THAT(texts("@!%p1 ld.global.v4.f32 {%f1,_}, [%rd1+-4];"),
              ElementsAre("@", "!", "%p1", "ld", "global", "v4", "f32", "{", "%f1", ",", "_", "}",
                          ",", "[", "%rd1", "+", "-", "4", "]", ";"));
}

TEST(PtxLexer, ModifiersHaveParts) {
  EXPECT_THAT(texts("mbarrier.shared::cta.L2::128B.b64"),
              ElementsAre("mbarrier", "shared::cta", "L2::128B", "b64"));
  EXPECT_THAT(texts("L: .x: ::"), ElementsAre("L", ":", "x", ":", ":", ":"));
}

TEST(PtxLexer, NamesAndTheirCharacters) {
  EXPECT_EQ(only("$L__BB0_2").kind, Kind::word);
  EXPECT_EQ(only("%tid").kind, Kind::word);
  EXPECT_EQ(only("_ZN3fooEv$1").text, "_ZN3fooEv$1");
  EXPECT_EQ(only("%").kind, Kind::symbol);
  EXPECT_EQ(only(".b32").text, "b32");
}

TEST(PtxLexer, OperatorsOfTwoCharacters) {
  EXPECT_THAT(texts("<<>><=>===!=&&||<>=!|"),
              ElementsAre("<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "<", ">=", "!", "|"));
}

TEST(PtxLexer, Integers) {
  EXPECT_EQ(only("0").value, 0u);
  EXPECT_EQ(only("42").value, 42u);
  EXPECT_EQ(only("0x1fU").value, 31u);
  EXPECT_EQ(only("0XFF").value, 255u);
  EXPECT_EQ(only("017").value, 15u);
  EXPECT_EQ(only("0b101").value, 5u);
  EXPECT_EQ(only("18446744073709551615").value, ~std::uint64_t{0});
  EXPECT_FALSE(only("9223372036854775807").is_unsigned);
  EXPECT_TRUE(only("9223372036854775808").is_unsigned);
  EXPECT_TRUE(only("1U").is_unsigned);
}

TEST(PtxLexer, RefusesWrongIntegers) {
  EXPECT_THAT(error_of(" 18446744073709551616"), HasSubstr("1:2 PTX line 1, column 2: "
                                                           "'18446744073709551616' does not fit"));
  EXPECT_THAT(error_of("0x10000000000000000"), HasSubstr("does not fit in 64 bits"));
  EXPECT_THAT(error_of("089"), HasSubstr("expected an integer of base 8, found '089'"));
  EXPECT_THAT(error_of("0x"), HasSubstr("expected an integer of base 16, found '0x'"));
  EXPECT_THAT(error_of("0b12"), HasSubstr("expected an integer of base 2, found '0b12'"));
  EXPECT_THAT(error_of("12ab"), HasSubstr("found '12ab'"));
}

TEST(PtxLexer, Reals) {
  EXPECT_EQ(only("0f3F800000").kind, Kind::real32);
  EXPECT_EQ(only("0f3F800000").value, 0x3f800000u);
  EXPECT_EQ(only("0FfF800000").value, 0xff800000u);
  EXPECT_EQ(only("0d3ff0000000000000").kind, Kind::real64);
  EXPECT_EQ(only("0d3FF0000000000000").value, 0x3ff0000000000000u);
  for (const auto& [text, value] : {std::pair{"1.5", 1.5},
                                    {"2.", 2.0},
                                    {"1e3", 1e3},
                                    {"25.E-2", 0.25},
                                    {"0.1", 0.1},
                                    {"0e0", 0.0}}) {
    EXPECT_EQ(only(text).kind, Kind::real64) << text;
    EXPECT_EQ(only(text).value, std::bit_cast<std::uint64_t>(value)) << text;
  }
}

TEST(PtxLexer, RefusesWrongReals) {
  EXPECT_THAT(error_of("0f3F80"),
              HasSubstr("expected 8 hexadecimal digits after '0f', found '0f3F80'"));
  EXPECT_THAT(error_of("0f3F8000000"), HasSubstr("expected 8"));
  EXPECT_THAT(error_of("0d3F800000"), HasSubstr("expected 16"));
  EXPECT_THAT(error_of("1.5.2"), HasSubstr("expected a number, found '1.5.2'"));
  EXPECT_THAT(error_of("1e"), HasSubstr("expected a number"));
  EXPECT_THAT(error_of("1e999"), HasSubstr("out of the range of f64"));
}

TEST(PtxLexer, CountsLinesAndColumns) {
  Lexer lexer("a // c\n\t/* x\n y */ b\r\nc");
  lexer.next();
  const Token b = lexer.next(), c = lexer.next(), end = lexer.next();
  EXPECT_EQ(b.line, 3u);
  EXPECT_EQ(b.column, 7u);
  EXPECT_EQ(c.line, 4u);
  EXPECT_EQ(c.column, 1u);
  EXPECT_EQ(end.column, 2u);
}

TEST(PtxLexer, CommentsMayTouchTheEnd) {
  EXPECT_THAT(texts("a//"), ElementsAre("a"));
  EXPECT_THAT(texts("a/**/"), ElementsAre("a"));
  EXPECT_THAT(texts("a/"), ElementsAre("a", "/"));
  EXPECT_EQ(error_of("a\n /* b *"),
            "2:2 PTX line 2, column 2: this comment never ends: expected '*/'");
  EXPECT_THAT(error_of("/*/"), HasSubstr("never ends"));
}

TEST(PtxLexer, Strings) {
  EXPECT_EQ(only("\"a b\\n\"").text, "a b\\n");
  EXPECT_EQ(only("\"\"").kind, Kind::string);
  EXPECT_THAT(error_of("\"abc\n\""), HasSubstr("this string never ends"));
}

TEST(PtxLexer, BytesThatAreNoPtx) {
  EXPECT_EQ(error_of("a \x1b[2J"), "1:3 PTX line 1, column 3: '\\x1b' is no PTX");
  EXPECT_THAT(error_of("\xff"), HasSubstr("'\\xff' is no PTX"));
  EXPECT_THAT(error_of("#include"), HasSubstr("'#' is no PTX"));
}

TEST(PtxLexer, DropsTrailingNuls) {
  EXPECT_THAT(texts(std::string_view("a\0\0", 3)), ElementsAre("a"));
  EXPECT_THAT(error_of(std::string_view("a\0b", 3)), HasSubstr("'\\x00' is no PTX"));
}

}  // namespace
}  // namespace assay::sim::ptx
