// Counts a submission's lines: code, comments, blank and duplicated ones.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace assay::sources {

struct LineCounts {
  std::int64_t code = 0;     // including lines that also have a comment
  std::int64_t comment = 0;  // only a comment
  std::int64_t blank = 0;    // including blank lines in comments

  bool operator==(const LineCounts&) const = default;
};

LineCounts line_counts(std::string_view source);

// Minimum lines of code that make a copy.
inline constexpr std::size_t kShortestCopy = 6;

// The number of lines in runs of at least kShortestCopy lines of code that occur elsewhere in these
// sources, token for token; each copy counts. Directives, comments, blank lines and lines with only
// brackets, commas and semicolons are ignored and do not break a run.
std::int64_t duplicated_lines(const std::vector<std::string_view>& sources);

}  // namespace assay::sources
