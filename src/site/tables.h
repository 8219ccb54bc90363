// Tables, as the pages have them. Optional end tags are left out: thousands of rows are written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "site/html.h"

namespace assay::site {

// A column's head. A click on one of text or numbers sorts, where the page has the script; numbers,
// and `right`, stand to the right.
struct Column {
  enum class Kind : std::uint8_t { plain, right, text, number };
  std::string title;
  Kind kind = Kind::plain;
  Html inside{};  // below the title: an axis
};

// <table> in a region that scrolls sideways by itself, and can be reached by keyboard for that; its
// head. `label` names it for screen readers.
void begin_table(Html&, std::string_view label, const std::vector<Column>&, Literal css = "");
void end_table(Html&);

void cell(Html&, std::string_view text);         // <td>text
void number_cell(Html&, std::string_view text);  // to the right
void reason_cell(Html&, std::string_view text);  // a sentence or two, in a wide column

// At most that many bytes of it, cut at a character, with an ellipsis.
std::string clipped(std::string_view text, std::size_t most);

}  // namespace assay::site
