#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "assay/error.h"
#include "report/rankings.h"

namespace assay {
namespace {

// The start of a line, and the start of the next.
struct Line {
  std::size_t begin = 0, end = 0;
};

std::vector<Line> lines_equal_to(std::string_view text, std::string_view wanted) {
  std::vector<Line> found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = text.find('\n', at);
    const std::size_t next = newline == std::string_view::npos ? text.size() : newline + 1;
    std::string_view line = text.substr(at, next - at);
    while (!line.empty() &&
           std::string_view("\r\n \t").find(line.back()) != std::string_view::npos) {
      line.remove_suffix(1);
    }
    if (line == wanted) found.push_back({at, next});
    at = next;
  }
  return found;
}

Line only_line(const std::string& text, const char* marker, const std::string& file) {
  const auto found = lines_equal_to(text, marker);
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    throw Error(
        fmt::format("{}: no line '{}': add the lines '{}' and '{}' where the rankings belong", file,
                    marker, kSectionBegin, kSectionEnd));
  }
  throw Error(fmt::format("{}: {} lines '{}': keep one", file, found.size(), marker));
}

}  // namespace

bool has_marker(const std::string& readme) {
  return !lines_equal_to(readme, kSectionBegin).empty() ||
         !lines_equal_to(readme, kSectionEnd).empty();
}

std::string replace_section(const std::string& readme, const std::string& section,
                            const std::string& file) {
  const Line begin = only_line(readme, kSectionBegin, file);
  const Line end = only_line(readme, kSectionEnd, file);
  if (end.begin < begin.end) {
    throw Error(
        fmt::format("{}: '{}' stands before '{}': swap them", file, kSectionEnd, kSectionBegin));
  }
  return readme.substr(0, begin.end) + section + readme.substr(end.begin);
}

}  // namespace assay
