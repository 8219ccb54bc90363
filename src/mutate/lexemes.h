// What may be changed in a source: its tokens, with operators and numbers in one piece.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace assay::mutate {

struct Lexeme {
  enum class Kind : std::uint8_t { word, number, literal, sign };
  Kind kind = Kind::word;
  std::string_view text;
  std::size_t begin = 0;       // offset in the source
  std::uint32_t line = 1;      // on which it begins
  bool spaced_before = false;  // white space or a comment
  bool spaced_after = false;
  bool after_directive = false;  // a preprocessor directive stands between it and the one before

  std::size_t end() const { return begin + text.size(); }
  bool is(std::string_view what) const { return kind != Kind::literal && text == what; }
  // A binary operator in a formatted source has spaces around it; brackets of templates, pointers
  // and signs of numbers have not.
  bool is_binary() const { return kind == Kind::sign && spaced_before && spaced_after; }
};

// Comments and preprocessor lines are left out, so nothing in them is ever changed. The source must
// outlive what is returned.
std::vector<Lexeme> lexemes_of(std::string_view source);

// Of each bracket ( [ { the position of its partner, of all else and of what has none the position
// itself. Angle brackets are not told from "less than".
std::vector<std::size_t> partners_of(const std::vector<Lexeme>&);

}  // namespace assay::mutate
