// Files that only grow, a line at a time: what a kill, a full disk or a power cut leaves is all
// lines that were appended and at most a part of one more, without its newline.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace assay::store {

struct Lines {
  std::vector<std::string> lines;  // without their newlines
  std::uintmax_t end = 0;          // where the next line will begin
};

// The whole lines from byte `from` on, which begins a line; a torn last one is left out. A missing
// file has none.
Lines read_lines(const std::filesystem::path&, std::uintmax_t from = 0);

// Appends one line, on disk when it returns; drops a torn one before it. `line` holds no newline.
// Throws Error, and leaves the file as it was, when there is no room. Returns where the next line
// will begin. REQUIRES that nobody else appends at the same time.
std::uintmax_t append_line(const std::filesystem::path&, std::string_view line);

}  // namespace assay::store
