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

// "unknown model 'textbok'; did you mean 'textbook'?" or, if nothing is near, the known names.
std::string unknown_name(std::string_view kind, std::string_view name,
                         const std::vector<std::string>& candidates);

// Makes bytes from a submission or compiler safe for a terminal and for JSON. Control and non-UTF-8
// bytes become \xNN; only newlines and tabs stay. At most max_lines lines of max_columns bytes,
// then a line that says how much was cut.
std::string printable(std::string_view untrusted, std::size_t max_lines = 20,
                      std::size_t max_columns = 200);

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
  std::string str() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace assay
