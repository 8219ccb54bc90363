// The lines of an answer: code, comments, blank ones, and those that stand there twice.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace assay::sources {

struct LineCounts {
  std::int64_t code = 0;     // also those that hold a comment besides
  std::int64_t comment = 0;  // and nothing else
  std::int64_t blank = 0;    // inside a comment, too

  bool operator==(const LineCounts&) const = default;
};

LineCounts line_counts(std::string_view source);

// So many lines of code make a copy.
inline constexpr std::size_t kShortestCopy = 6;

// How many lines belong to a run of kShortestCopy lines of code or more that stands elsewhere in
// these sources once more, token for token; each copy counts. Directives, comments, blank lines and
// lines of nothing but brackets, commas and semicolons are left out, and break no run.
std::int64_t duplicated_lines(const std::vector<std::string_view>& sources);

}  // namespace assay::sources
