#include "processes/memory_figures.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

#include "assay/error.h"
#include "util/files.h"

namespace assay::processes {
namespace {

// "VmHWM:	    1234 kB"
std::optional<std::uint64_t> find_field(std::string_view status, std::string_view name) {
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
  return std::nullopt;
}

std::uint64_t field(std::string_view status, std::string_view name) {
  if (const auto bytes = find_field(status, name)) return *bytes;
  throw Error(
      fmt::format("the kernel does not tell a worker's {}: memory cannot be graded here", name));
}

}  // namespace

MemoryFigures parse_memory_figures(std::string_view status) {
  return {.anonymous = field(status, "RssAnon"),
          .files = field(status, "RssFile"),
          .shared = field(status, "RssShmem"),
          .peak = field(status, "VmHWM")};
}

MemoryFigures memory_figures(pid_t pid) {
  return parse_memory_figures(read_file(fmt::format("/proc/{}/status", pid)));
}

std::optional<std::uint64_t> exact_resident(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/smaps_rollup", pid));
  std::stringstream text;
  text << in.rdbuf();
  return find_field(text.str(), "Rss");
}

// Linux sums up a figure of its own for each core once it has changed by max(32, 2 * cores of the
// machine) pages.
std::uint64_t counter_error(int cores) {
  const auto machine = static_cast<std::uint64_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  return static_cast<std::uint64_t>(cores) * std::max<std::uint64_t>(32, 2 * machine) * 4096;
}

// It charges 64 pages at a time for each core, and keeps what is left over.
std::uint64_t charge_error(int cores) { return static_cast<std::uint64_t>(cores + 1) * 64 * 4096; }

void reset_memory_peak(pid_t pid) {
  std::ofstream out(fmt::format("/proc/{}/clear_refs", pid));
  out << "5" << std::flush;
  if (!out) throw Error("the kernel does not reset a worker's VmHWM: memory cannot be graded here");
}

}  // namespace assay::processes
