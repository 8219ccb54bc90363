#include "code/pieces.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "util/characters.h"

namespace assay::sources {
namespace {

// Sorted for binary search: C++20 and CUDA keywords, and the fixed-width types.
constexpr std::array kKeywords = std::to_array<std::string_view>({"__constant__",
                                                                  "__device__",
                                                                  "__forceinline__",
                                                                  "__global__",
                                                                  "__host__",
                                                                  "__launch_bounds__",
                                                                  "__managed__",
                                                                  "__restrict__",
                                                                  "__shared__",
                                                                  "__syncthreads",
                                                                  "alignas",
                                                                  "alignof",
                                                                  "asm",
                                                                  "auto",
                                                                  "bool",
                                                                  "break",
                                                                  "case",
                                                                  "catch",
                                                                  "char",
                                                                  "class",
                                                                  "co_await",
                                                                  "co_return",
                                                                  "co_yield",
                                                                  "concept",
                                                                  "const",
                                                                  "const_cast",
                                                                  "consteval",
                                                                  "constexpr",
                                                                  "constinit",
                                                                  "continue",
                                                                  "decltype",
                                                                  "default",
                                                                  "delete",
                                                                  "do",
                                                                  "double",
                                                                  "dynamic_cast",
                                                                  "else",
                                                                  "enum",
                                                                  "explicit",
                                                                  "extern",
                                                                  "false",
                                                                  "float",
                                                                  "for",
                                                                  "friend",
                                                                  "goto",
                                                                  "if",
                                                                  "inline",
                                                                  "int",
                                                                  "int16_t",
                                                                  "int32_t",
                                                                  "int64_t",
                                                                  "int8_t",
                                                                  "long",
                                                                  "mutable",
                                                                  "namespace",
                                                                  "new",
                                                                  "noexcept",
                                                                  "nullptr",
                                                                  "operator",
                                                                  "private",
                                                                  "protected",
                                                                  "public",
                                                                  "register",
                                                                  "reinterpret_cast",
                                                                  "requires",
                                                                  "return",
                                                                  "short",
                                                                  "signed",
                                                                  "size_t",
                                                                  "sizeof",
                                                                  "static",
                                                                  "static_assert",
                                                                  "static_cast",
                                                                  "struct",
                                                                  "switch",
                                                                  "template",
                                                                  "this",
                                                                  "thread_local",
                                                                  "throw",
                                                                  "true",
                                                                  "try",
                                                                  "typedef",
                                                                  "typename",
                                                                  "uint16_t",
                                                                  "uint32_t",
                                                                  "uint64_t",
                                                                  "uint8_t",
                                                                  "union",
                                                                  "unsigned",
                                                                  "using",
                                                                  "virtual",
                                                                  "void",
                                                                  "volatile",
                                                                  "while"});
static_assert(std::ranges::is_sorted(kKeywords));

bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Tokenizer {
 public:
  explicit Tokenizer(std::string_view source) : all_(source) {}

  std::vector<Piece> run() {
    while (at_ < all_.size()) step();
    return std::move(pieces_);
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < all_.size() ? all_[at_ + ahead] : '\0';
  }
  std::string_view rest() const { return all_.substr(at_); }

  void take(Part part, std::size_t end) {
    end = std::min(end, all_.size());
    if (end <= at_) return;
    Piece* last = pieces_.empty() ? nullptr : &pieces_.back();
    if (last != nullptr && last->part == part) {
      last->text = {last->text.data(), last->text.size() + end - at_};
    } else {
      pieces_.push_back({part, all_.substr(at_, end - at_)});
    }
    const std::string_view taken = all_.substr(at_, end - at_);
    for (const char c : taken) {
      if (c == '\n') {
        line_start_ = true;
      } else if (c != ' ' && c != '\t') {
        line_start_ = false;
      }
    }
    at_ = end;
  }

  void step() {
    const char c = peek();
    if (c == '/' && peek(1) == '/') return take(Part::comment, line_end());
    if (c == '/' && peek(1) == '*') return take(Part::comment, after("*/", at_ + 2));
    if (c == '#' && line_start_) return directive();
    if (c == '"' || c == '\'') return quoted(at_);
    if (is_digit(c)) return number();
    if (is_word(c)) return word();
    take(Part::plain, at_ + 1);
  }

  // The end of the line, including lines continued by a backslash.
  std::size_t line_end() const {
    for (std::size_t i = at_; i < all_.size(); ++i) {
      if (all_[i] == '\n' && (i == at_ || all_[i - 1] != '\\')) return i;
    }
    return all_.size();
  }

  std::size_t after(std::string_view mark, std::size_t from) const {
    const std::size_t found = from <= all_.size() ? all_.find(mark, from) : std::string_view::npos;
    return found == std::string_view::npos ? all_.size() : found + mark.size();
  }

  // Takes the directive's name and what it includes; the rest of the line is code.
  void directive() {
    std::size_t end = at_ + 1;
    while (end < all_.size() && (all_[end] == ' ' || all_[end] == '\t')) ++end;
    const std::size_t name = end;
    while (end < all_.size() && is_word(all_[end])) ++end;
    if (all_.substr(name, end - name) == "include") end = line_end();
    take(Part::directive, end);
  }

  // Takes a literal from the opening quote at `quote`, including a prefix, to the closing quote.
  void quoted(std::size_t quote) {
    const char mark = all_[quote];
    for (std::size_t i = quote + 1; i < all_.size(); ++i) {
      if (all_[i] == '\n') return take(Part::literal, i);
      if (all_[i] == '\\') {
        ++i;
      } else if (all_[i] == mark) {
        return take(Part::literal, i + 1);
      }
    }
    take(Part::literal, all_.size());
  }

  // R"x( ... )x"; a delimiter has at most 16 characters.
  void raw_string(std::size_t quote) {
    const std::size_t length = all_.substr(quote + 1, 17).find('(');
    if (length == std::string_view::npos) return quoted(quote);
    const std::size_t open = quote + 1 + length;
    const std::string close = ")" + std::string(all_.substr(quote + 1, length)) + "\"";
    take(Part::literal, after(close, open));
  }

  void number() {
    std::size_t end = at_;
    const auto goes_on = [&](char c) {
      const bool sign = (c == '+' || c == '-') &&
                        std::string_view("eEpP").find(all_[end - 1]) != std::string_view::npos;
      return is_word(c) || c == '.' || sign ||
             (c == '\'' && end + 1 < all_.size() && is_word(all_[end + 1]));
    };
    while (end < all_.size() && (end == at_ || goes_on(all_[end]))) ++end;
    take(Part::plain, end);
  }

  void word() {
    std::size_t end = at_;
    while (end < all_.size() && is_word(all_[end])) ++end;
    const std::string_view word = all_.substr(at_, end - at_);
    if (end < all_.size() && all_[end] == '"' && word.size() <= 3) {
      if (word.back() == 'R') return raw_string(end);
      if (word == "L" || word == "u" || word == "U" || word == "u8") return quoted(end);
    }
    take(std::ranges::binary_search(kKeywords, word) ? Part::keyword : Part::plain, end);
  }

  std::string_view all_;
  std::size_t at_ = 0;
  bool line_start_ = true;
  std::vector<Piece> pieces_;
};

}  // namespace

std::vector<Piece> pieces_of(std::string_view source) { return Tokenizer(source).run(); }

}  // namespace assay::sources
