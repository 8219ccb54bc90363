// The parts of a source that may be mutated: its tokens, with operators and numbers as one piece
// each.
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
  std::uint32_t line = 1;      // where it begins
  bool spaced_before = false;  // white space or a comment
  bool spaced_after = false;
  bool after_directive = false;  // preceded by a preprocessor directive

  std::size_t end() const { return begin + text.size(); }
  bool is(std::string_view what) const { return kind != Kind::literal && text == what; }
  // In a formatted source, binary operators have spaces around them; template brackets, pointers
  // and signs of numbers do not.
  bool is_binary() const { return kind == Kind::sign && spaced_before && spaced_after; }
};

// Comments and preprocessor lines are left out, so nothing in them is ever changed. The source must
// outlive the result.
std::vector<Lexeme> lexemes_of(std::string_view source);

// For each bracket of ( [ {, the position of its partner; for unmatched brackets and all other
// lexemes, their own position. Angle brackets are not distinguished from "less than".
std::vector<std::size_t> partners_of(const std::vector<Lexeme>&);

}  // namespace assay::mutate
