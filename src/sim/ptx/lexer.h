// Splits PTX text into tokens, one at a time, without copies.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace assay::sim::ptx {

struct Token {
  enum class Kind : std::uint8_t {
    end,
    word,      // opcodes, registers, names: "ld", "%r1", "$L__BB0_2", "_"
    dot_word,  // directives and modifiers: ".global", ".L2::128B"; text has no dot
    integer,   // value
    real32,    // 0f3F800000: value holds the 32 bits
    real64,    // 0d..., 1.5: value holds the 64 bits
    string,    // text has no quotes; there are no escapes
    symbol,    // one character, or an operator of two: << >> <= >= == != && ||
  };
  Kind kind = Kind::end;
  bool is_unsigned = false;  // for integers: written with a U, or too large for s64
  std::uint32_t line = 1, column = 1;
  std::string_view text;  // into the PTX
  std::uint64_t value = 0;

  bool is(char symbol) const {
    return kind == Kind::symbol && text.size() == 1 && text.front() == symbol;
  }
};

// "'foo'", "'.align'", "the end of the text": for error messages; safe to print and short.
std::string describe(const Token&);

class Lexer {
 public:
  // `text` must outlive the lexer and its tokens. Trailing NULs are dropped.
  explicit Lexer(std::string_view text);

  // At the end, returns Kind::end repeatedly. Throws ParseError.
  Token next();

 private:
  void skip_blanks();
  void skip_block_comment();
  Token word(Token);
  Token dot_word(Token);
  Token string(Token);
  Token symbol(Token);
  Token number(Token);
  Token bits(Token, Token::Kind, int digits);
  Token integer(Token, const char* digits, unsigned base);
  Token decimal(Token);
  Token finish(Token);
  char peek(std::ptrdiff_t ahead = 0) const { return end_ - at_ > ahead ? at_[ahead] : '\0'; }

  const char* at_;
  const char* end_;
  const char* line_begin_;
  std::uint32_t line_ = 1;
};

}  // namespace assay::sim::ptx
