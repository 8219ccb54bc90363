// Pieces of GitHub Markdown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace assay::report {

// Untrusted text as inline Markdown that shows just those characters: no markup, HTML, link or
// table cell can begin or end in it. Control bytes and line ends become spaces; what is no UTF-8,
// or turns the direction of text, is shown as \xNN. Longer than max_bytes is cut at a character and
// ends with an ellipsis.
std::string markdown_text(std::string_view untrusted, std::size_t max_bytes = 160);

// A path as the target of a link: what would end the link, or the line, is percent-encoded.
std::string link_target(std::string_view path);

// A table. Cells are Markdown already. Columns from the second on may be right-aligned: alignment
// has one of 'l', 'r', 'c' per column.
std::string markdown_table(const std::vector<std::string>& header, std::string_view alignment,
                           const std::vector<std::vector<std::string>>& rows);

// Takes away the columns, but for the first, in which nothing stands in any row.
void drop_empty_columns(std::vector<std::string>& header, std::string& alignment,
                        std::vector<std::vector<std::string>>& rows);

}  // namespace assay::report
