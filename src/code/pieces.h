// Splits C++ and CUDA sources into pieces.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace assay::sources {

enum class Part : std::uint8_t { plain, keyword, comment, literal, directive };

struct Piece {
  Part part;
  std::string_view text;
};

// Splits the text into nonempty pieces that concatenate to the text. This is a tokenizer, not a
// compiler: it accepts any bytes, in linear time. An unterminated comment or string ends with the
// line or the text. A directive's name and what it includes are one piece; the rest of its line is
// split like code.
std::vector<Piece> pieces_of(std::string_view source);

}  // namespace assay::sources
