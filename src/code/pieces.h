// C++ and CUDA sources cut into their parts.
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

// The text cut into pieces, none of them empty, which make up the text again. A tokenizer, no
// compiler: of any bytes whatever it makes something, in time linear in their number. What is left
// open (a comment, a string) ends with the line or the text. Of a directive the name is one, and
// what it includes; the rest of its line is cut like code.
std::vector<Piece> pieces_of(std::string_view source);

}  // namespace assay::sources
