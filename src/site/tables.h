// HTML tables. Optional end tags are left out, because thousands of rows are written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "site/html.h"

namespace assay::site {

// A column's head. Clicking the head of a text, number or grade column sorts, on pages with the
// script. Columns of kind `number` and `right` are right-aligned. Of `grade` the best comes first.
struct Column {
  enum class Kind : std::uint8_t { plain, right, text, number, grade };
  std::string title;  // may be empty above an axis
  Kind kind = Kind::plain;
  Html inside{};  // below the title: an axis
};

// Begins a <table>, with its head, in a region that scrolls sideways on its own and has keyboard
// focus for that. `label` names it for screen readers.
void begin_table(Html&, std::string_view label, const std::vector<Column>&, Literal css = "");
void end_table(Html&);

void cell(Html&, std::string_view text);         // <td>text
void number_cell(Html&, std::string_view text);  // right-aligned
void reason_cell(Html&, std::string_view text);  // a sentence or two, in a wide column

// At most `most` bytes of the text, cut at a character boundary, with an ellipsis.
std::string clipped(std::string_view text, std::size_t most);

}  // namespace assay::site
