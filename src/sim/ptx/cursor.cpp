#include "sim/ptx/cursor.h"

#include <fmt/format.h>

#include <limits>

#include "sim/ptx/parser.h"

namespace assay::sim::ptx {

std::uint32_t Cursor::expect_u32(const char* what) {
  const Token number = expect(Token::Kind::integer, what);
  if (number.value > std::numeric_limits<std::uint32_t>::max()) {
    fail(number, fmt::format("expected {} of at most 32 bits, found {}", what, describe(number)));
  }
  return static_cast<std::uint32_t>(number.value);
}

void Cursor::expected(std::string_view what) const {
  fail(token_, fmt::format("expected {}, found {}", what, describe(token_)));
}

void Cursor::expected_symbol(char symbol, const char* where) const {
  fail(token_, fmt::format("expected '{}' {}, found {}", symbol, where, describe(token_)));
}

void Cursor::fail(const Token& at, const std::string& what) {
  throw ParseError(at.line, at.column, what);
}

}  // namespace assay::sim::ptx
