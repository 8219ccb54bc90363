#include "sim/ptx/constant.h"

#include <fmt/format.h>

namespace assay::sim::ptx {
namespace {

using Kind = Constant::Kind;

constexpr int kMaxExpressionDepth = 64;  // of signs, parentheses and ?: in an expression
constexpr int kTermPrecedence = 9;

// 0 if it is not a binary operator. As in C.
int precedence(const Token& token) {
  if (token.kind != Token::Kind::symbol) return 0;
  const char c = token.text.front();
  if (token.text.size() == 2) {
    switch (c) {
      case '<':
      case '>': return token.text[1] == '=' ? 7 : 8;
      case '=':
      case '!': return 6;
      case '&': return 2;
      default: return 1;
    }
  }
  switch (c) {
    case '*':
    case '/':
    case '%': return 10;
    case '+':
    case '-': return kTermPrecedence;
    case '<':
    case '>': return 7;
    case '&': return 5;
    case '^': return 4;
    case '|': return 3;
    default: return 0;
  }
}

Constant integer(std::uint64_t bits, bool is_unsigned) {
  return {Kind::integer, is_unsigned, bits};
}

std::int64_t as_signed(std::uint64_t bits) { return static_cast<std::int64_t>(bits); }

bool less(Constant a, Constant b) {
  return a.is_unsigned || b.is_unsigned ? a.bits < b.bits : as_signed(a.bits) < as_signed(b.bits);
}

// Shifts by 64 or more give the same as shifting bit by bit.
Constant shift(Constant a, std::uint64_t by, bool left) {
  if (left) return integer(by > 63 ? 0 : a.bits << by, a.is_unsigned);
  if (a.is_unsigned) return integer(by > 63 ? 0 : a.bits >> by, true);
  return integer(static_cast<std::uint64_t>(as_signed(a.bits) >> (by > 63 ? 63 : by)), false);
}

Constant divide(const Token& op, Constant a, Constant b) {
  const bool is_unsigned = a.is_unsigned || b.is_unsigned;
  const bool quotient = op.text == "/";
  if (b.bits == 0) Cursor::fail(op, "this constant expression divides by zero");
  if (is_unsigned) return integer(quotient ? a.bits / b.bits : a.bits % b.bits, true);
  // Dividing the most negative number by -1 would overflow.
  if (as_signed(b.bits) == -1) return integer(quotient ? 0 - a.bits : 0, false);
  const std::int64_t x = as_signed(a.bits), y = as_signed(b.bits);
  return integer(static_cast<std::uint64_t>(quotient ? x / y : x % y), false);
}

Constant apply(const Token& op, Constant a, Constant b) {
  const bool is_unsigned = a.is_unsigned || b.is_unsigned;
  if (op.text == "<<" || op.text == ">>") return shift(a, b.bits, op.text == "<<");
  if (op.text == "<=") return integer(!less(b, a), false);
  if (op.text == ">=") return integer(!less(a, b), false);
  if (op.text == "==") return integer(a.bits == b.bits, false);
  if (op.text == "!=") return integer(a.bits != b.bits, false);
  if (op.text == "&&") return integer(a.bits != 0 && b.bits != 0, false);
  if (op.text == "||") return integer(a.bits != 0 || b.bits != 0, false);
  switch (op.text.front()) {
    case '+': return integer(a.bits + b.bits, is_unsigned);
    case '-': return integer(a.bits - b.bits, is_unsigned);
    case '*': return integer(a.bits * b.bits, is_unsigned);
    case '<': return integer(less(a, b), false);
    case '>': return integer(less(b, a), false);
    case '&': return integer(a.bits & b.bits, is_unsigned);
    case '^': return integer(a.bits ^ b.bits, is_unsigned);
    case '|': return integer(a.bits | b.bits, is_unsigned);
    default: return divide(op, a, b);
  }
}

class ExpressionParser {
 public:
  explicit ExpressionParser(Cursor& cursor) : cursor_(cursor) {}

  Constant conditional() {
    const Constant condition = binary(1);
    if (!cursor_.at('?')) return condition;
    const Token at = cursor_.take();
    const Depth depth(*this);
    const Constant yes = conditional();
    cursor_.expect(':', "between the two values of '?'");
    const Constant no = conditional();
    require_integers(at, condition, yes, no);
    return integer(condition.bits != 0 ? yes.bits : no.bits, yes.is_unsigned || no.is_unsigned);
  }

  // Operators of precedence `least` and above; equal precedence groups to the left.
  Constant binary(int least) {
    Constant left = unary();
    while (precedence(cursor_.token()) >= least) {
      const Token op = cursor_.take();
      const Constant right = binary(precedence(op) + 1);
      require_integers(op, left, right);
      left = apply(op, left, right);
    }
    return left;
  }

 private:
  struct Depth {
    explicit Depth(ExpressionParser& owner) : parser(owner) {
      if (++parser.depth_ > kMaxExpressionDepth) {
        Cursor::fail(parser.cursor_.token(), "this constant expression is nested too deeply");
      }
    }
    ~Depth() { --parser.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    ExpressionParser& parser;
  };

  Constant unary() {
    const Token at = cursor_.token();
    switch (at.kind) {
      case Token::Kind::integer: cursor_.take(); return integer(at.value, at.is_unsigned);
      case Token::Kind::real32: cursor_.take(); return {Kind::real32, false, at.value};
      case Token::Kind::real64: cursor_.take(); return {Kind::real64, false, at.value};
      default: break;
    }
    const Depth depth(*this);
    if (cursor_.accept('(')) return parenthesis();
    if (cursor_.accept('+')) return unary();
    if (cursor_.accept('-')) return negative(unary());
    if (cursor_.accept('~')) {
      const Constant a = unary();
      require_integers(at, a);
      return integer(~a.bits, a.is_unsigned);
    }
    if (cursor_.accept('!')) {
      const Constant a = unary();
      require_integers(at, a);
      return integer(a.bits == 0, false);
    }
    cursor_.expected("a constant");
  }

  // After '(': an expression, or the cast (.s64) or (.u64).
  Constant parenthesis() {
    const Token at = cursor_.token();
    const bool is_signed = cursor_.accept_directive("s64");
    if (is_signed || cursor_.accept_directive("u64")) {
      cursor_.expect(')', "after the type of a cast");
      const Constant a = unary();
      require_integers(at, a);
      return integer(a.bits, !is_signed);
    }
    const Constant a = conditional();
    cursor_.expect(')', "after a constant expression");
    return a;
  }

  static Constant negative(Constant a) {
    switch (a.kind) {
      case Kind::integer: return integer(0 - a.bits, a.is_unsigned);
      case Kind::real32: return {Kind::real32, false, a.bits ^ (std::uint64_t{1} << 31)};
      case Kind::real64: return {Kind::real64, false, a.bits ^ (std::uint64_t{1} << 63)};
    }
    return a;
  }

  template <class... Constants>
  static void require_integers(const Token& at, const Constants&... constants) {
    if (((constants.kind == Kind::integer) && ...)) return;
    Cursor::fail(at, fmt::format("expected integers as operands of {}", describe(at)));
  }

  Cursor& cursor_;
  int depth_ = 0;
};

}  // namespace

bool begins_constant(const Token& token) {
  switch (token.kind) {
    case Token::Kind::integer:
    case Token::Kind::real32:
    case Token::Kind::real64: return true;
    default: return token.is('-') || token.is('+') || token.is('~');
  }
}

Constant parse_constant(Cursor& cursor) { return ExpressionParser(cursor).conditional(); }

std::int64_t parse_offset(Cursor& cursor) {
  std::uint64_t offset = 0;
  while (cursor.at('+') || cursor.at('-')) {
    const Token sign = cursor.take();
    const Constant term = ExpressionParser(cursor).binary(kTermPrecedence + 1);
    if (term.kind != Kind::integer) Cursor::fail(sign, "expected an integer as offset");
    offset += sign.is('+') ? term.bits : 0 - term.bits;
  }
  return static_cast<std::int64_t>(offset);
}

}  // namespace assay::sim::ptx
