#include "code/tokens.h"

#include <algorithm>
#include <array>

#include "code/pieces.h"
#include "util/characters.h"

namespace assay::sources {
namespace {

class Scanner {
 public:
  explicit Scanner(std::string_view source) : source_(source) {}

  std::vector<Token> run() {
    for (const Piece& piece : pieces_of(source_)) {
      switch (piece.part) {
        case Part::comment: spaced_ = true; break;
        case Part::literal: add(Token::Kind::literal, piece.text); break;
        case Part::directive: begin_directive(piece.text); break;
        case Part::plain:
        case Part::keyword: scan(piece.text); break;
      }
      if (piece.part != Part::plain) count_lines(piece.text);
    }
    return std::move(tokens_);
  }

 private:
  void count_lines(std::string_view text) {
    line_ += static_cast<std::uint32_t>(std::ranges::count(text, '\n'));
  }

  void add(Token::Kind kind, std::string_view text) {
    if (in_directive_) {
      note_condition(text);
    } else {
      tokens_.push_back({kind, spaced_, false, line_, text});
    }
    spaced_ = false;
  }

  void begin_directive(std::string_view text) {
    in_directive_ = true;
    text.remove_prefix(1);  // the #
    while (!text.empty() && !is_word(text.front())) text.remove_prefix(1);
    std::size_t length = 0;
    while (length < text.size() && is_word(text[length])) ++length;
    tokens_.push_back({Token::Kind::directive, true, false, line_, text.substr(0, length)});
    condition_length_ = 0;
  }

  // Considers only conditions of one word.
  void note_condition(std::string_view text) {
    Token& directive = tokens_.back();
    const bool zero = text == "0" || text == "false";
    directive.never = ++condition_length_ == 1 && zero && directive.text == "if";
  }

  void scan(std::string_view text) {
    constexpr std::array<std::string_view, 4> kPairs{"::", "->", "&&", "||"};
    for (std::size_t at = 0; at < text.size();) {
      if (text[at] == '\n') end_line(text.data() + at);
      if (text[at] == '\n' || is_blank(text[at])) {
        spaced_ = true;
        ++at;
        continue;
      }
      std::size_t length = 1;
      if (is_word(text[at])) {
        while (at + length < text.size() && is_word(text[at + length])) ++length;
        add(Token::Kind::word, text.substr(at, length));
      } else {
        if (std::ranges::find(kPairs, text.substr(at, 2)) != kPairs.end()) length = 2;
        add(Token::Kind::sign, text.substr(at, length));
      }
      at += length;
    }
  }

  // A backslash at the end of a line continues a directive.
  void end_line(const char* newline) {
    ++line_;
    const char* last = newline;
    while (last > source_.data() && *(last - 1) == '\r') --last;
    if (last == source_.data() || *(last - 1) != '\\') in_directive_ = false;
  }

  std::string_view source_;
  std::vector<Token> tokens_;
  std::uint32_t line_ = 1;
  std::size_t condition_length_ = 0;
  bool spaced_ = true, in_directive_ = false;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source) { return Scanner(source).run(); }

}  // namespace assay::sources
