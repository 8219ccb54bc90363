#include "report/page.h"

#include <fmt/format.h>

#include "report/figures.h"
#include "report/markdown_text.h"
#include "util/text.h"

namespace assay::report {
namespace {

constexpr std::size_t kLongestText = 600;  // bytes of a sentence or a cell

std::string in_markdown(const Text& t) {
  const std::string text = markdown_text(t.text, kLongestText);
  return t.link.empty() ? text : fmt::format("[{}]({})", text, link_target(t.link));
}

// Wraps at spaces, so that a terminal need not.
std::string wrapped(const std::string& text, std::size_t columns, const std::string& margin) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t end = std::min(text.size(), at + columns);
    if (end < text.size()) {
      const std::size_t space = text.rfind(' ', end);
      if (space != std::string::npos && space > at) end = space;
    }
    out += (out.empty() ? "" : margin) + text.substr(at, end - at) + '\n';
    at = end;
    while (at < text.size() && text[at] == ' ') ++at;
  }
  return out;
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
        std::vector<std::string> header;
        for (const std::string& h : b.header) header.push_back(one_line(h));
        TextTable table(header);
        for (const Row& row : b.rows) {
          std::vector<std::string> cells;
          for (const Text& t : row) cells.push_back(one_line(t.text));
          table.add(std::move(cells));
        }
        out += indented(table.str(), 2) + '\n';
        break;
      }
    }
  }
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

}  // namespace assay::report
