#include "report/page.h"

#include <fmt/format.h>

#include "report/figures.h"
#include "report/markdown_text.h"
#include "util/text.h"

namespace assay::report {
namespace {

constexpr std::size_t kLongestText = 600;  // bytes of a sentence or a cell
constexpr const char* kNothing = "–";      // a cell without a value

std::string in_markdown(const Text& t) {
  const std::string text = markdown_text(t.text, kLongestText);
  return t.link.empty() ? text : fmt::format("[{}]({})", text, link_target(t.link));
}

// Without columns in which no row says anything. If it is too wide for the terminal, rows become
// columns where that helps.
std::string terminal_table(std::vector<std::vector<std::string>> rows, std::size_t columns) {
  const auto says_something = [&](std::size_t column) {
    return std::any_of(rows.begin() + 1, rows.end(), [&](const auto& row) {
      return column >= row.size() || (!row[column].empty() && row[column] != kNothing);
    });
  };
  std::vector<std::vector<std::string>> upright(rows.size()), turned;
  for (std::size_t c = 0; c < rows.front().size(); ++c) {
    if (!says_something(c)) continue;
    turned.emplace_back();
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const std::string cell = c < rows[r].size() ? rows[r][c] : "";
      upright[r].push_back(cell);
      turned.back().push_back(cell);
    }
  }
  const auto drawn = [&](const std::vector<std::vector<std::string>>& all) {
    TextTable table(all.front());
    for (std::size_t r = 1; r < all.size(); ++r) table.add(all[r]);
    return table.str(columns);
  };
  std::string text = drawn(upright);
  if (columns_of(text) <= columns) return text;
  std::string other = drawn(turned);
  return columns_of(other) < columns_of(text) ? other : text;
}

}  // namespace

void Page::heading(int level, const std::string& text) {
  blocks_.push_back({.kind = Block::Kind::heading, .level = level, .text = text});
}

void Page::paragraph(const std::string& text) {
  blocks_.push_back({.kind = Block::Kind::paragraph, .text = text});
}

void Page::markdown(const std::string& text) {
  blocks_.push_back({.kind = Block::Kind::markdown, .text = text});
}

void Page::bullet(const Text& text) {
  blocks_.push_back({.kind = Block::Kind::bullet, .text = text});
}

void Page::table(const std::vector<std::string>& header, const std::string& alignment,
                 const std::vector<Row>& rows) {
  if (rows.empty()) return;
  blocks_.push_back(
      {.kind = Block::Kind::table, .header = header, .alignment = alignment, .rows = rows});
}

std::string Page::to_markdown() const {
  std::string out;
  bool in_list = false;
  for (const Block& b : blocks_) {
    if (in_list && b.kind != Block::Kind::bullet) out += '\n';
    in_list = b.kind == Block::Kind::bullet;
    switch (b.kind) {
      case Block::Kind::heading:
        out += std::string(static_cast<std::size_t>(b.level), '#') + ' ' + in_markdown(b.text) +
               "\n\n";
        break;
      case Block::Kind::paragraph: out += in_markdown(b.text) + "\n\n"; break;
      case Block::Kind::markdown: out += b.text.text + "\n\n"; break;
      case Block::Kind::bullet: out += "- " + in_markdown(b.text) + '\n'; break;
      case Block::Kind::table: {
        std::vector<std::vector<std::string>> rows;
        for (const Row& row : b.rows) {
          rows.emplace_back();
          for (const Text& t : row) rows.back().push_back(in_markdown(t));
        }
        std::vector<std::string> header;
        for (const std::string& h : b.header) header.push_back(markdown_text(h));
        out += markdown_table(header, b.alignment, rows);
        break;
      }
    }
  }
  if (in_list) out += '\n';
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

std::string Page::to_terminal() const {
  constexpr std::size_t kColumns = 98;
  std::string out;
  bool in_list = false;
  for (const Block& b : blocks_) {
    if (in_list && b.kind != Block::Kind::bullet) out += '\n';
    in_list = b.kind == Block::Kind::bullet;
    switch (b.kind) {
      case Block::Kind::heading:
        out += one_line(b.text.text, kLongestText) + (b.level > 2 ? "\n" : "\n\n");
        break;
      case Block::Kind::paragraph:
        out += wrapped(one_line(b.text.text, kLongestText), kColumns, "") + '\n';
        break;
      case Block::Kind::markdown: break;
      case Block::Kind::bullet:
        out += "  - " + wrapped(one_line(b.text.text, kLongestText), kColumns - 4, "    ");
        break;
      case Block::Kind::table: {
        std::vector<std::vector<std::string>> rows(1);
        for (const std::string& h : b.header) rows.front().push_back(one_line(h));
        for (const Row& row : b.rows) {
          rows.emplace_back();
          for (const Text& t : row) rows.back().push_back(one_line(t.text));
        }
        out += indented(terminal_table(std::move(rows), kColumns - 2), 2) + '\n';
        break;
      }
    }
  }
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

}  // namespace assay::report
