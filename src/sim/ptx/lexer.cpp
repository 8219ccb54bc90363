#include "sim/ptx/lexer.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>

#include "sim/ptx/parser.h"

namespace assay::sim::ptx {
namespace {

constexpr std::size_t kMaxText = std::size_t{1} << 30;  // keeps lines and columns within 32 bits
constexpr std::size_t kMaxQuote = 40;                   // characters of a token in a message

// Characters that may follow the first character of a name.
constexpr std::array<bool, 256> kFollows = [] {
  std::array<bool, 256> follows{};
  for (int c = '0'; c <= '9'; ++c) follows[static_cast<std::size_t>(c)] = true;
  for (int c = 'a'; c <= 'z'; ++c) follows[static_cast<std::size_t>(c)] = true;
  for (int c = 'A'; c <= 'Z'; ++c) follows[static_cast<std::size_t>(c)] = true;
  follows['_'] = follows['$'] = true;
  return follows;
}();

bool follows(char c) { return kFollows[static_cast<unsigned char>(c)]; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// 99 if it is not a digit in any base.
unsigned digit_value(char c) {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A') + 10;
  return 99;
}

[[noreturn]] void fail(const Token& at, const std::string& what) {
  throw ParseError(at.line, at.column, what);
}

// Makes untrusted bytes safe for a terminal: only printable ASCII is kept.
std::string quote(std::string_view text) {
  std::string out = "'";
  for (const char c : text.substr(0, kMaxQuote)) {
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return out + (text.size() > kMaxQuote ? "...'" : "'");
}

}  // namespace

ParseError::ParseError(std::uint32_t line_number, std::uint32_t column_number,
                       const std::string& what)
    : std::runtime_error(
          fmt::format("PTX line {}, column {}: {}", line_number, column_number, what)),
      line(line_number),
      column(column_number) {}

std::string describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::end: return "the end of the text";
    case Token::Kind::dot_word: return quote(fmt::format(".{}", token.text.substr(0, kMaxQuote)));
    case Token::Kind::string: return "the string " + quote(token.text);
    default: return quote(token.text);
  }
}

Lexer::Lexer(std::string_view text) {
  while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
  if (text.size() > kMaxText) throw ParseError(1, 1, "more than 1 GiB of text");
  at_ = line_begin_ = text.data();
  end_ = at_ + text.size();
}

Token Lexer::next() {
  skip_blanks();
  Token token;
  token.line = line_;
  token.column = static_cast<std::uint32_t>(at_ - line_begin_) + 1;
  token.text = std::string_view(at_, 0);
  if (at_ == end_) return token;
  const char c = *at_;
  if (is_digit(c)) return number(token);
  if (follows(c) || (c == '%' && follows(peek(1)))) return word(token);
  if (c == '.' && follows(peek(1))) return dot_word(token);
  if (c == '"') return string(token);
  return symbol(token);
}

Token Lexer::symbol(Token token) {
  static constexpr std::string_view kSymbols = ".,;:@|=+-*/%<>?!&^~()[]{}";
  token.kind = Token::Kind::symbol;
  const char c = *at_++;
  if (kSymbols.find(c) == std::string_view::npos) {
    fail(token, fmt::format("{} is no PTX", quote(finish(token).text)));
  }
  const bool doubled = (c == '<' || c == '>' || c == '&' || c == '|' || c == '=') && peek() == c;
  const bool compares = (c == '<' || c == '>' || c == '!') && peek() == '=';
  if (doubled || compares) ++at_;
  return finish(token);
}

void Lexer::skip_blanks() {
  for (; at_ != end_; ++at_) {
    if (*at_ == '\n') {
      ++line_;
      line_begin_ = at_ + 1;
    } else if (*at_ == '/' && peek(1) == '/') {
      while (at_ + 1 != end_ && at_[1] != '\n') ++at_;
    } else if (*at_ == '/' && peek(1) == '*') {
      skip_block_comment();
    } else if (!is_blank(*at_)) {
      return;
    }
  }
}

// Leaves at_ on the last character.
void Lexer::skip_block_comment() {
  Token start;
  start.line = line_;
  start.column = static_cast<std::uint32_t>(at_ - line_begin_) + 1;
  for (at_ += 2; end_ - at_ >= 2; ++at_) {
    if (at_[0] == '*' && at_[1] == '/') {
      ++at_;
      return;
    }
    if (*at_ == '\n') {
      ++line_;
      line_begin_ = at_ + 1;
    }
  }
  fail(start, "this comment never ends: expected '*/'");
}

Token Lexer::finish(Token token) {
  token.text =
      std::string_view(token.text.data(), static_cast<std::size_t>(at_ - token.text.data()));
  return token;
}

Token Lexer::word(Token token) {
  token.kind = Token::Kind::word;
  do ++at_;
  while (at_ != end_ && follows(*at_));
  return finish(token);
}

// Modifiers may have parts: "shared::cta", "mbarrier::complete_tx::bytes".
Token Lexer::dot_word(Token token) {
  token.kind = Token::Kind::dot_word;
  token.text = std::string_view(++at_, 0);
  while (at_ != end_) {
    if (follows(*at_)) {
      ++at_;
    } else if (*at_ == ':' && peek(1) == ':' && follows(peek(2))) {
      at_ += 2;
    } else {
      break;
    }
  }
  return finish(token);
}

Token Lexer::string(Token token) {
  token.kind = Token::Kind::string;
  token.text = std::string_view(++at_, 0);
  while (at_ != end_ && *at_ != '"' && *at_ != '\n') ++at_;
  if (at_ == end_ || *at_ == '\n') fail(token, "this string never ends: expected '\"' in its line");
  token = finish(token);
  ++at_;
  return token;
}

Token Lexer::number(Token token) {
  if (*at_ == '0') {
    switch (peek(1)) {
      case 'x':
      case 'X': return integer(token, at_ + 2, 16);
      case 'b':
      case 'B': return integer(token, at_ + 2, 2);
      case 'f':
      case 'F': return bits(token, Token::Kind::real32, 8);
      case 'd':
      case 'D': return bits(token, Token::Kind::real64, 16);
      default: break;
    }
  }
  const char* after = at_;
  while (after != end_ && is_digit(*after)) ++after;
  if (after != end_ && (*after == '.' || *after == 'e' || *after == 'E')) return decimal(token);
  return *at_ == '0' ? integer(token, at_, 8) : integer(token, at_, 10);
}

// 0f and eight, or 0d and sixteen, hexadecimal digits.
Token Lexer::bits(Token token, Token::Kind kind, int digits) {
  token.kind = kind;
  at_ += 2;
  int found = 0;
  for (; at_ != end_ && digit_value(*at_) < 16; ++at_, ++found) {
    if (found < digits) token.value = token.value << 4 | digit_value(*at_);
  }
  if (found != digits || follows(peek())) {
    while (at_ != end_ && follows(*at_)) ++at_;
    token = finish(token);
    fail(token, fmt::format("expected {} hexadecimal digits after '{}', found {}", digits,
                            token.text.substr(0, 2), quote(token.text)));
  }
  return finish(token);
}

Token Lexer::integer(Token token, const char* digits, unsigned base) {
  token.kind = Token::Kind::integer;
  bool overflow = false;
  for (at_ = digits; at_ != end_ && digit_value(*at_) < base; ++at_) {
    overflow |= token.value > (~std::uint64_t{0} - digit_value(*at_)) / base;
    token.value = token.value * base + digit_value(*at_);
  }
  const bool empty = at_ == digits;
  if (peek() == 'U') {
    ++at_;
    token.is_unsigned = true;
  }
  if (empty || follows(peek())) {
    while (at_ != end_ && follows(*at_)) ++at_;
    fail(token,
         fmt::format("expected an integer of base {}, found {}", base, quote(finish(token).text)));
  }
  token = finish(token);
  if (overflow) fail(token, fmt::format("{} does not fit in 64 bits", quote(token.text)));
  token.is_unsigned |= token.value >> 63 != 0;
  return token;
}

Token Lexer::decimal(Token token) {
  token.kind = Token::Kind::real64;
  double value = 0;
  const auto [after, error] = std::from_chars(at_, end_, value);
  at_ = after;
  while (at_ != end_ && (follows(*at_) || *at_ == '.')) ++at_;
  token = finish(token);
  if (at_ != after) fail(token, fmt::format("expected a number, found {}", quote(token.text)));
  if (error != std::errc{}) {
    fail(token, fmt::format("{} is out of the range of f64", quote(token.text)));
  }
  token.value = std::bit_cast<std::uint64_t>(value);
  return token;
}

}  // namespace assay::sim::ptx
