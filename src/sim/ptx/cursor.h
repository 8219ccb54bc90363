// A parser's current token, and error messages about it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/ptx/ast.h"
#include "sim/ptx/lexer.h"

namespace assay::sim::ptx {

class Cursor {
 public:
  explicit Cursor(std::string_view text) : lexer_(text), token_(lexer_.next()) {}

  const Token& token() const { return token_; }
  bool at(Token::Kind kind) const { return token_.kind == kind; }
  bool at(char symbol) const { return token_.is(symbol); }
  bool at_directive(std::string_view name) const {
    return token_.kind == Token::Kind::dot_word && token_.text == name;
  }

  // Returns the token and advances to the next one.
  Token take() {
    const Token token = token_;
    token_ = lexer_.next();
    return token;
  }
  // These advance only if the token is the requested one.
  bool accept(char symbol) { return at(symbol) && (take(), true); }
  bool accept_directive(std::string_view name) { return at_directive(name) && (take(), true); }
  // These throw otherwise: "expected ';' after the operands, found ...".
  void expect(char symbol, const char* where) {
    if (!accept(symbol)) expected_symbol(symbol, where);
  }
  Token expect(Token::Kind kind, const char* what) {
    if (!at(kind)) expected(what);
    return take();
  }
  std::uint32_t expect_u32(const char* what);  // an integer

  [[noreturn]] void expected(std::string_view what) const;  // "expected `what`, found ..."
  [[noreturn]] void expected_symbol(char symbol, const char* where) const;
  [[noreturn]] static void fail(const Token& at, const std::string& what);

 private:
  Lexer lexer_;
  Token token_;
};

}  // namespace assay::sim::ptx
