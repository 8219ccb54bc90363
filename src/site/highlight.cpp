#include "site/highlight.h"

#include <fmt/format.h>

#include <cstddef>

#include "code/pieces.h"

namespace assay::site {
namespace {

using sources::Part;
using sources::Piece;

void add_piece(Html& html, Part part, std::string_view text) {
  if (text.empty()) return;
  switch (part) {
    case Part::plain: html.text(text); return;
    case Part::keyword: html.raw("<b>").text(text).raw("</b>"); return;
    case Part::comment: html.raw("<i>").text(text).raw("</i>"); return;
    case Part::literal: html.raw("<u>").text(text).raw("</u>"); return;
    case Part::directive: html.raw("<em>").text(text).raw("</em>"); return;
  }
}

}  // namespace

Html highlighted(std::string_view source, const std::string& prefix,
                 const std::vector<std::size_t>& marked) {
  Html html;
  std::size_t line = 1;
  auto next = marked.begin();
  bool open = false;
  const auto begin_line = [&] {
    while (next != marked.end() && *next < line) ++next;
    open = next != marked.end() && *next == line;
    if (open) html.open("mark", {{"id", fmt::format("{}{}", prefix, line)}});
  };
  begin_line();
  for (const Piece& piece : sources::pieces_of(source)) {
    std::string_view text = piece.text;
    for (;;) {
      const std::size_t end = text.find('\n');
      // Between marked lines, adds many lines at once.
      if (end == std::string_view::npos || (!open && (next == marked.end()))) {
        add_piece(html, piece.part, text);
        break;
      }
      add_piece(html, piece.part, text.substr(0, end));
      if (open) html.close("mark");
      html.raw("\n");
      ++line;
      begin_line();
      text.remove_prefix(end + 1);
    }
  }
  if (open) html.close("mark");
  return html;
}

}  // namespace assay::site
