// Text for people: suggestions for misspelt names, untrusted text made printable, tables.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

// The candidate nearest to `name` by edit distance, if it is near enough for a typing error.
std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& candidates);

// "unknown model 'textbok'; did you mean 'textbook'?" or, if nothing is near, the known names, each
// once, as long as they are few.
std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& candidates);

// Makes bytes from a submission or compiler safe for a terminal and for JSON. Control and non-UTF-8
// bytes become \xNN; only newlines and tabs stay. At most max_lines lines of max_columns bytes,
// then a line that says how much was cut.
std::string printable(std::string_view untrusted, std::size_t max_lines = 20,
                      std::size_t max_columns = 200);

// What lines of prose and of tables should fit in.
inline constexpr std::size_t kTerminalColumns = 100;

// The widest line's, in code points.
std::size_t columns_of(std::string_view text);

// Wraps at spaces, so that a terminal need not: lines of at most that many code points, unless a
// word is longer. `margin` stands before each line but the first. Each line ends with a newline.
std::string wrapped(std::string_view text, std::size_t columns, std::string_view margin);

// A number to one decimal, as scores are shown, without a trailing zero: "52.6", "50".
std::string tenths(double value);

// A measured amount with up to four digits and its unit, with bytes ("B") by powers of 1024:
// "1.35", "512 KiB".
std::string amount_text(double value, std::string_view unit);

// Aligned columns, separated by two spaces; numbers are right-aligned. Widths count code points.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // If that is wider than `columns`, the last column is wrapped, as long as it keeps some width.
  std::string str(std::size_t columns = std::string::npos) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace assay
