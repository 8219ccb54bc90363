// Files that grow a line at a time. A kill, a full disk or a power cut leaves all appended lines
// and at most part of one more, without its newline.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay::store {

struct Lines {
  std::vector<std::string> lines;  // without their newlines
  std::uintmax_t end = 0;          // where the next line begins
};

// The complete lines from byte `from`, which must be the start of a line. An incomplete last line
// is left out. A missing file has none.
Lines read_lines(const std::filesystem::path&, std::uintmax_t from = 0);

// Appends one line, on disk when it returns; first drops an incomplete last line. `line` must not
// contain a newline. If there is no room, throws Error and leaves the file as it was. Returns where
// the next line begins. REQUIRES that nobody else appends at the same time.
std::uintmax_t append_line(const std::filesystem::path&, std::string_view line);

}  // namespace assay::store
