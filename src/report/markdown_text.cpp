#include "report/markdown_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "util/text.h"

namespace assay::report {
namespace {

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// Markdown allows escaping any ASCII punctuation. The characters here need no escape: some never
// have a meaning within a line, an underscore has none between letters, and dots and colons matter
// only in what GitHub turns into links ("www.", "http:") and emoji (":name:").
bool is_plain(std::string_view text, std::size_t at) {
  constexpr std::string_view kPlainPunctuation = " ,;=/%+-'()\"?";
  const char c = text[at];
  const char before = at > 0 ? text[at - 1] : ' ',
             after = at + 1 < text.size() ? text[at + 1] : ' ';
  if (c == '_') return is_alphanumeric(before) && is_alphanumeric(after);
  if (c == '.') return before != 'w' && before != 'W';
  if (c == ':') return after == ' ';
  return is_alphanumeric(c) || kPlainPunctuation.find(c) != std::string_view::npos ||
         static_cast<unsigned char>(c) >= 0x80;
}

std::string_view cut(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return text;
  while (max_bytes > 0 && (static_cast<unsigned char>(text[max_bytes]) & 0xc0) == 0x80) --max_bytes;
  return text.substr(0, max_bytes);
}

// One-byte control characters become spaces. Anything else that moves or reverses text, or is not
// UTF-8, is shown as \xNN.
std::string visible(std::string_view untrusted) {
  constexpr std::size_t kAll = static_cast<std::size_t>(-1);
  std::string text(untrusted);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return printable(text, 1, kAll);
}

}  // namespace

std::string markdown_text(std::string_view untrusted, std::size_t max_bytes) {
  const std::string text = visible(cut(untrusted, max_bytes));
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (is_plain(text, i)) {
      out += c;
    } else {
      out += '\\';
      out += c;
    }
  }
  if (cut(untrusted, max_bytes).size() < untrusted.size()) out += " ...";
  return out;
}

std::string link_target(std::string_view path) {
  constexpr std::string_view kPlain = "/._-~";
  std::string out;
  for (const char c : path) {
    if (is_alphanumeric(c) || kPlain.find(c) != std::string_view::npos) {
      out += c;
    } else {
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return out;
}

std::string markdown_table(const std::vector<std::string>& header, std::string_view alignment,
                           const std::vector<std::vector<std::string>>& rows) {
  const auto line = [](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += ' ' + cell + " |";
    return text + '\n';
  };
  std::vector<std::string> rule;
  for (const char a : alignment) rule.emplace_back(a == 'r' ? "---:" : a == 'c' ? ":---:" : "---");
  std::string text = line(header) + line(rule);
  for (const auto& row : rows) text += line(row);
  return text + '\n';
}

void drop_empty_columns(std::vector<std::string>& header, std::string& alignment,
                        std::vector<std::vector<std::string>>& rows) {
  for (std::size_t c = header.size(); c-- > 1;) {
    const bool any = std::ranges::any_of(rows, [c](const auto& row) { return !row[c].empty(); });
    if (any) continue;
    const auto at = static_cast<std::ptrdiff_t>(c);
    header.erase(header.begin() + at);
    alignment.erase(c, 1);
    for (auto& row : rows) row.erase(row.begin() + at);
  }
}

}  // namespace assay::report
