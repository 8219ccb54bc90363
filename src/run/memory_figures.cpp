#include "run/memory_figures.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>

#include "util/files.h"

namespace assay::run {
namespace {

// "VmHWM:	    1234 kB"
std::uint64_t field(std::string_view status, std::string_view name) {
  for (std::size_t at = status.find(name); at != std::string_view::npos;
       at = status.find(name, at + 1)) {
    if (at != 0 && status[at - 1] != '\n') continue;
    std::string_view rest = status.substr(at + name.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(": \t"), rest.size()));
    std::uint64_t kib = 0;
    if (std::from_chars(rest.data(), rest.data() + rest.size(), kib).ec == std::errc()) {
      return kib * 1024;
    }
  }
  throw Error(fmt::format("the kernel does not tell a worker's {}: memory cannot be graded here",
                          name));
}

}  // namespace

MemoryFigures parse_memory_figures(std::string_view status) {
  return {field(status, "RssAnon"), field(status, "RssFile"), field(status, "RssShmem"),
          field(status, "VmHWM")};
}

MemoryFigures memory_figures(pid_t pid) {
  return parse_memory_figures(read_file(fmt::format("/proc/{}/status", pid)));
}

void reset_memory_peak(pid_t pid) {
  std::ofstream out(fmt::format("/proc/{}/clear_refs", pid));
  out << "5" << std::flush;
  if (!out) throw Error("the kernel does not reset a worker's VmHWM: memory cannot be graded here");
}

}  // namespace assay::run
