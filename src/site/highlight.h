// C++ and CUDA sources as HTML that tells their parts apart.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "site/html.h"

namespace assay::site {

enum class Part : std::uint8_t { plain, keyword, comment, literal, directive };

struct Piece {
  Part part;
  std::string_view text;
};

// The text cut into pieces, none of them empty, which make up the text again. A tokenizer, no
// compiler: of any bytes whatever it makes something, in time linear in their number. What is left
// open (a comment, a string) ends with the line or the text.
std::vector<Piece> pieces_of(std::string_view source);

// The text as the contents of a <pre>: <b> keywords, <i> comments, <u> literals, <em> directives.
// The lines in `marked`, counted from 1, sorted, each get a link target, `prefix` and the number.
Html highlighted(std::string_view source, const std::string& prefix,
                 const std::vector<std::size_t>& marked);

}  // namespace assay::site
