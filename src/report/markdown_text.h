// Pieces of GitHub Markdown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

// Untrusted text as inline Markdown that shows exactly those characters: no markup, HTML, link or
// table cell can begin or end in it. Control bytes and line ends become spaces; bytes that are not
// UTF-8, and characters that change the direction of text, are shown as \xNN. A text longer than
// max_bytes is cut at a character boundary and ends with an ellipsis.
std::string markdown_text(std::string_view untrusted, std::size_t max_bytes = 160);

// A path as a link target: characters that would end the link or the line are percent-encoded.
std::string link_target(std::string_view path);

// A table. Cells are Markdown already. `alignment` has one of 'l', 'r', 'c' per column, to
// right-align columns from the second on.
std::string markdown_table(const std::vector<std::string>& header, std::string_view alignment,
                           const std::vector<std::vector<std::string>>& rows);

// Removes columns that are empty in every row, except the first.
void drop_empty_columns(std::vector<std::string>& header, std::string& alignment,
                        std::vector<std::vector<std::string>>& rows);

}  // namespace assay::report
