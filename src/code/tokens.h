// The tokens of a source, without its comments.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace assay::sources {

struct Token {
  enum class Kind : std::uint8_t {
    word,       // identifiers, keywords and numbers
    literal,    // a string or a character
    sign,       // "::", "->", "&&", "||", else one character
    directive,  // whole, with continued lines; the text is its name: "ifdef"
  };
  Kind kind = Kind::word;
  bool spaced = false;     // preceded by white space or a comment
  bool never = false;      // a directive that is "#if 0" or "#if false"
  std::uint32_t line = 1;  // where it begins
  std::string_view text;

  bool is(std::string_view what) const { return kind != Kind::literal && text == what; }
};

// Takes time linear in the source's length, which must be below 4 GiB. The source must outlive the
// tokens.
std::vector<Token> tokens_of(std::string_view source);

}  // namespace assay::sources
