#include "mutate/lexemes.h"

#include <algorithm>
#include <array>

#include "code/tokens.h"

namespace assay::mutate {
namespace {

using sources::Token;

// Longest first. ">>" also closes two templates, but then without a space before it.
constexpr std::array<std::string_view, 20> kOperators{
    "<<=", ">>=", "<=>", "<<", ">>", "<=", ">=", "==", "!=", "+=",
    "-=",  "*=",  "/=",  "%=", "&=", "|=", "^=", "++", "--", "..."};

class Joiner {
 public:
  explicit Joiner(std::string_view source) : source_(source), tokens_(sources::tokens_of(source)) {}

  std::vector<Lexeme> run() {
    for (std::size_t i = 0; i < tokens_.size();) i = take(i);
    return std::move(lexemes_);
  }

 private:
  std::size_t offset(std::size_t i) const {
    return static_cast<std::size_t>(tokens_[i].text.data() - source_.data());
  }
  // Whether token i directly follows the previous one.
  bool joins(std::size_t i) const {
    return i < tokens_.size() && tokens_[i].kind != Token::Kind::directive && !tokens_[i].spaced &&
           offset(i) == offset(i - 1) + tokens_[i - 1].text.size();
  }
  static bool begins_number(std::string_view text) { return text[0] >= '0' && text[0] <= '9'; }

  std::size_t take(std::size_t i) {
    const Token& t = tokens_[i];
    if (t.kind == Token::Kind::directive) {
      after_directive_ = true;
      return i + 1;
    }
    if (t.kind == Token::Kind::literal) return add(i, i + 1, Lexeme::Kind::literal);
    if (t.kind == Token::Kind::word)
      return begins_number(t.text) ? add(i, number_end(i), Lexeme::Kind::number)
                                   : add(i, i + 1, Lexeme::Kind::word);
    const bool fraction = t.is(".") && joins(i + 1) && begins_number(tokens_[i + 1].text);
    if (fraction) return add(i, number_end(i + 1), Lexeme::Kind::number);
    return add(i, operator_end(i), Lexeme::Kind::sign);
  }

  // "1", ".", "5e", "-", "3f" are one number.
  std::size_t number_end(std::size_t i) const {
    std::size_t end = i + 1;
    while (joins(end)) {
      const std::string_view before = tokens_[end - 1].text;
      const bool hex = tokens_[i].text.starts_with("0x") || tokens_[i].text.starts_with("0X");
      const bool exponent =
          before.back() == (hex ? 'p' : 'e') || before.back() == (hex ? 'P' : 'E');
      const bool sign = exponent && (tokens_[end].is("-") || tokens_[end].is("+"));
      const bool digits =
          tokens_[end].kind == Token::Kind::word && tokens_[end - 1].kind == Token::Kind::sign;
      const bool mark = tokens_[end].is(".") || tokens_[end].is("'");
      if (!mark && !sign && !digits) break;
      ++end;
    }
    return end;
  }

  std::size_t operator_end(std::size_t i) const {
    const std::string_view rest = source_.substr(offset(i));
    for (const std::string_view sign : kOperators) {
      if (!rest.starts_with(sign)) continue;
      std::size_t end = i, length = 0;
      while (length < sign.size()) length += tokens_[end++].text.size();
      return end;
    }
    return i + 1;
  }

  std::size_t add(std::size_t first, std::size_t end, Lexeme::Kind kind) {
    const std::size_t begin = offset(first);
    const std::size_t length = offset(end - 1) + tokens_[end - 1].text.size() - begin;
    lexemes_.push_back({kind, source_.substr(begin, length), begin, tokens_[first].line,
                        tokens_[first].spaced, end < tokens_.size() && tokens_[end].spaced,
                        after_directive_});
    after_directive_ = false;
    return end;
  }

  std::string_view source_;
  std::vector<Token> tokens_;
  std::vector<Lexeme> lexemes_;
  bool after_directive_ = false;
};

}  // namespace

std::vector<Lexeme> lexemes_of(std::string_view source) { return Joiner(source).run(); }

std::vector<std::size_t> partners_of(const std::vector<Lexeme>& lexemes) {
  std::vector<std::size_t> partners(lexemes.size()), open;
  for (std::size_t i = 0; i < lexemes.size(); ++i) {
    partners[i] = i;
    const Lexeme& l = lexemes[i];
    if (l.kind != Lexeme::Kind::sign) continue;
    if (l.is("(") || l.is("[") || l.is("{")) {
      open.push_back(i);
    } else if ((l.is(")") || l.is("]") || l.is("}")) && !open.empty()) {
      partners[i] = open.back();
      partners[open.back()] = i;
      open.pop_back();
    }
  }
  return partners;
}

}  // namespace assay::mutate
