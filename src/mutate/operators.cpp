#include "mutate/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "mutate/lexemes.h"

namespace assay::mutate {
namespace {

using Text = std::string_view;
using Kind = Lexeme::Kind;

struct Replacement {
  Operator op;
  Text from, to;
};

// Replacements of binary operators.
constexpr auto kBinary = std::to_array<Replacement>({
    {Operator::arithmetic, "+", "-"},   {Operator::arithmetic, "-", "+"},
    {Operator::arithmetic, "*", "/"},   {Operator::arithmetic, "/", "*"},
    {Operator::arithmetic, "%", "*"},   {Operator::arithmetic, "+=", "-="},
    {Operator::arithmetic, "-=", "+="}, {Operator::arithmetic, "*=", "/="},
    {Operator::arithmetic, "/=", "*="}, {Operator::arithmetic, "<<", ">>"},
    {Operator::arithmetic, ">>", "<<"}, {Operator::arithmetic, "&", "|"},
    {Operator::arithmetic, "|", "&"},   {Operator::arithmetic, "^", "|"},
    {Operator::arithmetic, "|=", "&="}, {Operator::arithmetic, "&=", "|="},
    {Operator::bound, "<", "<="},       {Operator::bound, "<=", "<"},
    {Operator::bound, ">", ">="},       {Operator::bound, ">=", ">"},
    {Operator::relational, "<", ">"},   {Operator::relational, ">", "<"},
    {Operator::relational, "<=", ">="}, {Operator::relational, ">=", "<="},
    {Operator::relational, "==", "!="}, {Operator::relational, "!=", "=="},
    {Operator::logical, "&&", "||"},    {Operator::logical, "||", "&&"},
});

constexpr auto kWords = std::to_array<Replacement>({
    {Operator::constant, "true", "false"},
    {Operator::constant, "false", "true"},
    {Operator::type, "int64_t", "int32_t"},
    {Operator::type, "uint64_t", "uint32_t"},
    {Operator::type, "size_t", "uint32_t"},
    {Operator::type, "double", "float"},
});

// Words that begin a statement that cannot simply be removed, or that declares something.
constexpr auto kKept = std::to_array<Text>(
    {"alignas", "auto",   "case",    "catch",     "class",    "const",   "constexpr", "default",
     "do",      "else",   "enum",    "explicit",  "extern",   "for",     "friend",    "goto",
     "if",      "inline", "public",  "namespace", "operator", "private", "protected", "return",
     "static",  "struct", "switch",  "template",  "throw",    "try",     "typedef",   "typename",
     "union",   "using",  "virtual", "volatile",  "while"});

constexpr auto kNoCall = std::to_array<Text>({"if", "for", "while", "switch", "return", "sizeof",
                                              "alignof", "decltype", "catch", "static_assert"});
// Functions whose argument order does not matter.
constexpr auto kCommutative =
    std::to_array<Text>({"max", "min", "fmax", "fmin", "fmaxf", "fminf", "hypot", "gcd", "lcm"});

template <class Words>
bool is_one_of(const Words& words, const Lexeme& l) {
  return l.kind == Kind::word && std::ranges::find(words, l.text) != words.end();
}

// The digits and the suffix after them.
std::pair<std::string, Text> split_suffix(Text number, Text letters) {
  std::size_t end = number.size();
  while (end > 0 && letters.find(number[end - 1]) != Text::npos) --end;
  std::string digits(number.substr(0, end));
  std::erase(digits, '\'');
  return {digits, number.substr(end)};
}

std::vector<std::string> neighbours_of_integer(Text number) {
  const bool hex = number.starts_with("0x") || number.starts_with("0X");
  const auto [digits, suffix] = split_suffix(number, "uUlLzZ");
  const Text plain = hex ? Text(digits).substr(2) : Text(digits);
  std::uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(plain.data(), plain.data() + plain.size(), value, hex ? 16 : 10);
  if (error != std::errc() || end != plain.data() + plain.size()) return {};
  const auto shown = [&, &suffix = suffix](std::uint64_t v) {
    return hex ? fmt::format("0x{:x}{}", v, suffix) : fmt::format("{}{}", v, suffix);
  };
  std::vector<std::string> result;
  if (value != UINT64_MAX) result.push_back(shown(value + 1));
  if (value != 0) result.push_back(shown(value - 1));
  return result;
}

std::vector<std::string> neighbours_of_fraction(Text number) {
  const auto [digits, suffix] = split_suffix(number, "fFlL");
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return {};
  const auto shown = [&suffix = suffix](double v) {
    std::string text = fmt::format("{}", v);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    return text + std::string(suffix);
  };
  std::vector<std::string> result{shown(value + 1)};
  if (value >= 1) result.push_back(shown(value - 1));
  return result;
}

bool is_fraction(Text number) {
  const bool hex = number.starts_with("0x") || number.starts_with("0X");
  return number.find_first_of(hex ? ".pP" : ".eE") != Text::npos;
}

class Finder {
 public:
  explicit Finder(Text source)
      : source_(source), lexemes_(lexemes_of(source)), partners_(partners_of(lexemes_)) {}

  std::vector<Edit> run() {
    for (std::size_t i = 0; i < lexemes_.size(); ++i) {
      replace_operator(i);
      replace_word(i);
      change_constant(i);
      remove_statement(i);
      swap_arguments(i);
      negate_condition(i);
    }
    std::ranges::stable_sort(edits_, [](const Edit& a, const Edit& b) {
      return std::pair(a.begin, a.op) < std::pair(b.begin, b.op);
    });
    return std::move(edits_);
  }

 private:
  const Lexeme& at(std::size_t i) const { return lexemes_[i]; }
  bool is(std::size_t i, Text what) const { return i < lexemes_.size() && at(i).is(what); }
  bool opens(std::size_t i) const { return partners_[i] > i; }

  void add(Operator op, std::size_t begin, std::size_t end, std::string replacement) {
    if (source_.substr(begin, end - begin) == replacement) return;
    edits_.push_back({op, begin, end - begin, std::move(replacement)});
  }
  void replace(Operator op, const Lexeme& l, std::string replacement) {
    add(op, l.begin, l.end(), std::move(replacement));
  }
  // The source from the first lexeme to the last.
  Text text(std::size_t first, std::size_t last) const {
    return source_.substr(at(first).begin, at(last).end() - at(first).begin);
  }

  bool ends_operand(std::size_t i) const {
    const Lexeme& l = at(i);
    if (l.kind == Kind::word) return !l.is("return") && !l.is("case");
    return l.kind != Kind::sign || l.is(")") || l.is("]") || l.is("}");
  }

  void replace_operator(std::size_t i) {
    if (i == 0 || !at(i).is_binary() || !ends_operand(i - 1)) return;
    for (const Replacement& r : kBinary) {
      if (at(i).is(r.from)) replace(r.op, at(i), std::string(r.to));
    }
  }

  void replace_word(std::size_t i) {
    if (at(i).kind != Kind::word) return;
    for (const Replacement& r : kWords) {
      if (at(i).is(r.from)) replace(r.op, at(i), std::string(r.to));
    }
  }

  void change_constant(std::size_t i) {
    if (at(i).kind != Kind::number) return;
    const Text number = at(i).text;
    for (std::string& other :
         is_fraction(number) ? neighbours_of_fraction(number) : neighbours_of_integer(number))
      replace(Operator::constant, at(i), std::move(other));
  }

  // Whether the lexemes look like "type name": two words, or the end of a type and a word.
  bool declares(std::size_t first, std::size_t last) const {
    for (std::size_t i = first; i < last; ++i) {
      if (is(i, "=")) return false;
      if (opens(i) && is(i, "(")) return false;
      if (opens(i)) i = partners_[i];
      if (i >= last || at(i + 1).kind != Kind::word || !at(i + 1).spaced_before) continue;
      const bool type_ends = is(i, "*") || is(i, "&") || is(i, ">") || is(i, ">>");
      if (at(i).kind == Kind::word || (type_ends && !at(i).spaced_before)) return true;
    }
    return false;
  }

  // Whether the lexeme at i closes the head of an if, for or while, or is an else.
  bool ends_head(std::size_t i) const {
    if (is(i, "else")) return true;
    if (!is(i, ")") || partners_[i] >= i || partners_[i] == 0) return false;
    const std::size_t before = partners_[i] - 1;
    return is(before, "if") || is(before, "for") || is(before, "while") || is(before, "constexpr");
  }

  // The semicolon of a statement that begins at `first`; nothing if the statement cannot be
  // removed.
  std::optional<std::size_t> statement_end(std::size_t first) const {
    bool assigns = false;
    for (std::size_t i = first; i < lexemes_.size(); ++i) {
      if (i > first && at(i).after_directive) return std::nullopt;
      if (is(i, ";")) return i;
      if (is(i, "=")) assigns = true;
      if (is(i, "{") && !assigns) return std::nullopt;
      if (is(i, ")") || is(i, "]") || is(i, "}")) return std::nullopt;
      if (opens(i)) i = partners_[i];
    }
    return std::nullopt;
  }

  bool in_body(std::size_t i) const {
    for (std::size_t j = i; j-- > 0;) {
      if (partners_[j] < j) {
        j = partners_[j];
      } else if (opens(j)) {
        return is(j, "{");
      }
    }
    return false;
  }

  void remove_statement(std::size_t i) {
    if (i == 0) return;
    const bool guarded = ends_head(i - 1);
    const bool begins = guarded || is(i - 1, ";") || is(i - 1, "{") || is(i - 1, "}");
    if (!begins || is(i, ";")) return;
    if (is_one_of(kKept, at(i)) && !(is(i, "return") && (guarded || is(i + 1, ";")))) return;
    const auto end = statement_end(i);
    if (!end || *end == i || !in_body(i)) return;
    if (!is(i, "return") && declares(i, *end - 1)) return;
    const bool jump = is(i, "return") || is(i, "break") || is(i, "continue");
    if (!jump && !does_something(i, *end)) return;
    add(Operator::statement, at(i).begin, at(*end - 1).end(), "");
  }

  // Whether the statement assigns, increments or calls; a lone name is an enumerator or has no
  // effect.
  bool does_something(std::size_t first, std::size_t end) const {
    for (std::size_t i = first; i < end; ++i) {
      const Text sign = at(i).kind == Kind::sign ? at(i).text : "";
      if (sign == "++" || sign == "--" || sign == "(") return true;
      if (sign.ends_with("=") && sign != "==" && sign != "!=" && sign != "<=" && sign != ">=")
        return true;
    }
    return false;
  }

  void swap_arguments(std::size_t i) {
    if (i == 0 || !is(i, "(") || !opens(i) || at(i).spaced_before) return;
    const Lexeme& name = at(i - 1);
    const bool call =
        (name.kind == Kind::word && !is_one_of(kNoCall, name) && !is_one_of(kCommutative, name)) ||
        (name.is(">") && !name.spaced_before && !of_commutative(i - 1));
    if (!call) return;
    const auto arguments = split(i + 1, partners_[i]);
    for (const auto& [first, last] : arguments) {
      if (first > last || declares(first, last)) return;
      for (std::size_t j = first; j <= last; ++j) {
        if (is(j, "{") || at(j).after_directive) return;
      }
    }
    for (std::size_t a = 0; a + 1 < arguments.size(); ++a) {
      const auto [first, last] = arguments[a];
      const auto [next, end] = arguments[a + 1];
      add(Operator::arguments, at(first).begin, at(end).end(),
          fmt::format("{}, {}", text(next, end), text(first, last)));
    }
  }

  // Whether this is std::max<T>( ... ) or similar; `closing` is the template's closing bracket.
  bool of_commutative(std::size_t closing) const {
    for (std::size_t j = closing; j-- > 0;) {
      if (is(j, "<")) return j > 0 && is_one_of(kCommutative, at(j - 1));
      if (is(j, ";") || is(j, "(")) return false;
    }
    return false;
  }

  // First and last lexeme of each comma-separated part in [begin, end).
  std::vector<std::pair<std::size_t, std::size_t>> split(std::size_t begin, std::size_t end) const {
    std::vector<std::pair<std::size_t, std::size_t>> parts;
    std::size_t first = begin;
    for (std::size_t i = begin; i < end; ++i) {
      if (opens(i)) i = partners_[i];
      if (is(i, ",")) {
        parts.emplace_back(first, i - 1);
        first = i + 1;
      }
    }
    parts.emplace_back(first, end - 1);
    return parts;
  }

  void negate_condition(std::size_t i) {
    if (!is(i, "if") && !is(i, "while")) return;
    std::size_t open = i + 1;
    if (is(open, "constexpr")) ++open;
    if (!is(open, "(") || !opens(open)) return;
    std::size_t first = open + 1;
    const std::size_t end = partners_[open];
    for (std::size_t j = first; j < end; ++j) {
      if (opens(j)) j = partners_[j];
      if (is(j, ";")) first = j + 1;
    }
    if (first >= end) return;
    add(Operator::condition, at(first).begin, at(end - 1).end(),
        fmt::format("!({})", text(first, end - 1)));
  }

  Text source_;
  std::vector<Lexeme> lexemes_;
  std::vector<std::size_t> partners_;
  std::vector<Edit> edits_;
};

}  // namespace

const char* to_string(Operator op) {
  switch (op) {
    case Operator::arithmetic: return "arithmetic";
    case Operator::bound: return "bound";
    case Operator::relational: return "relational";
    case Operator::logical: return "logical";
    case Operator::constant: return "constant";
    case Operator::type: return "type";
    case Operator::statement: return "statement";
    case Operator::arguments: return "arguments";
    case Operator::condition: return "condition";
  }
  return "?";
}

std::vector<Edit> edits_of(std::string_view source) { return Finder(source).run(); }

}  // namespace assay::mutate
