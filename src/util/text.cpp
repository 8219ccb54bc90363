#include "util/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

namespace assay {
namespace {

constexpr std::size_t kMostListed = 12;    // names in an error
constexpr std::size_t kLeastWrapped = 30;  // of a table's last column

// Edit distance with transpositions of neighbours (Damerau-Levenshtein, optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

// Length of the well-formed UTF-8 sequence at the start of `text`, or 0.
std::size_t utf8_length(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char c = at(0);
  if (c < 0x80) return 1;
  const std::size_t n = c >= 0xc2 && c <= 0xdf   ? 2
                        : (c & 0xf0) == 0xe0     ? 3
                        : c >= 0xf0 && c <= 0xf4 ? 4
                                                 : 0;
  if (n == 0 || text.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (c == 0xe0 && at(1) < 0xa0) || (c == 0xf0 && at(1) < 0x90);
  const bool surrogate = c == 0xed && at(1) > 0x9f;
  const bool too_high = c == 0xf4 && at(1) > 0x8f;
  const bool c1_control = c == 0xc2 && at(1) < 0xa0;
  const bool direction = c == 0xe2 && at(1) == 0x80 && at(2) >= 0xaa && at(2) <= 0xae;
  const bool isolate = c == 0xe2 && at(1) == 0x81 && at(2) >= 0xa6 && at(2) <= 0xa9;
  return overlong || surrogate || too_high || c1_control || direction || isolate ? 0 : n;
}

std::string escape_line(std::string_view line, std::size_t max_columns) {
  std::string out;
  while (!line.empty()) {
    if (out.size() >= max_columns) return out + "...";
    std::size_t n = utf8_length(line);
    const auto c = static_cast<unsigned char>(line[0]);
    if (n == 0 || (n == 1 && (c < 0x20 || c == 0x7f) && c != '\t')) {
      out += fmt::format("\\x{:02x}", c);
      n = 1;
    } else {
      out += line.substr(0, n);
    }
    line.remove_prefix(n);
  }
  return out;
}

bool begins_code_point(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_code_point));
}

// How many bytes the first `columns` code points take.
std::size_t bytes_of(std::string_view text, std::size_t columns) {
  std::size_t i = 0;
  for (std::size_t seen = 0; i < text.size(); ++i) {
    if (begins_code_point(text[i]) && seen++ == columns) break;
  }
  return i;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isdigit(c) != 0 || c == '.' || c == '-' || c == '+' || c == '%';
  });
}

}  // namespace

std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t d = distance(name, candidate);
    if (d < best_distance) {
      best_distance = d;
      best = candidate;
    }
  }
  return best;
}

std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& candidates) {
  const std::string start = fmt::format("unknown {} '{}'", kind, printable(name, 1, 80));
  if (const auto near = nearest(name, candidates))
    return fmt::format("{}; did you mean '{}'?", start, *near);
  if (candidates.empty()) return start + "; there are none";
  std::vector<std::string_view> known;
  for (const std::string& candidate : candidates) {
    if (std::ranges::find(known, candidate) == known.end()) known.push_back(candidate);
  }
  if (known.size() > kMostListed)
    return fmt::format("{}: none of the {} known ones is near", start, known.size());
  return fmt::format("{}; known: {}", start, fmt::join(known, ", "));
}

std::size_t columns_of(std::string_view text) {
  std::size_t most = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    most = std::max(most, width(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return most;
}

std::string wrapped(std::string_view text, std::size_t columns, std::string_view margin) {
  std::string out;
  while (!text.empty()) {
    std::size_t end = bytes_of(text, columns);
    if (end < text.size() && text[end] != ' ') {
      std::size_t space = text.rfind(' ', end);
      if (space == std::string_view::npos || space == 0) space = text.find(' ', end);
      end = std::min(space, text.size());
    }
    if (!out.empty()) out += margin;
    out += text.substr(0, end);
    out += '\n';
    text.remove_prefix(std::min(text.find_first_not_of(' ', end), text.size()));
  }
  return out;
}

std::string printable(std::string_view untrusted, std::size_t max_lines, std::size_t max_columns) {
  std::string out;
  std::size_t lines = 0;
  while (!untrusted.empty()) {
    if (lines == max_lines) {
      return out + fmt::format("\n... ({} more bytes)", untrusted.size());
    }
    const std::size_t end = untrusted.find('\n');
    if (lines++ > 0) out += '\n';
    out += escape_line(untrusted.substr(0, end), max_columns);
    if (end == std::string_view::npos) break;
    untrusted.remove_prefix(end + 1);
  }
  return out;
}

std::string tenths(double value) { return fmt::format("{}", std::round(value * 10) / 10); }

std::string amount_text(double value, std::string_view unit) {
  if (unit.empty()) return fmt::format("{:.4g}", value);
  std::string_view prefix;
  if (unit == "B") {
    for (const std::string_view larger : {"Ki", "Mi", "Gi", "Ti"}) {
      if (std::abs(value) < 1024) break;
      value /= 1024;
      prefix = larger;
    }
  }
  return fmt::format("{:.4g} {}{}", value, prefix, unit);
}

std::string TextTable::str(std::size_t columns) const {
  std::vector<std::size_t> widths;
  for (const auto& row : rows_) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
  }
  std::size_t margin = 0;  // where the last column begins
  for (std::size_t c = 0; c + 1 < widths.size(); ++c) margin += widths[c] + 2;
  const std::size_t last = std::max(columns, margin + kLeastWrapped) - margin;
  std::string out;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (c > 0) line += "  ";
      if (c + 1 == widths.size() && width(row[c]) > last) {
        line += wrapped(row[c], last, std::string(margin, ' '));
        line.pop_back();
        break;
      }
      const std::string padding(widths[c] - width(row[c]), ' ');
      line += is_number(row[c]) ? padding + row[c] : row[c] + padding;
    }
    while (!line.empty() && line.back() == ' ') line.pop_back();
    out += line + '\n';
  }
  return out;
}

}  // namespace assay
