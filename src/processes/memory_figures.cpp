#include "processes/memory_figures.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>

#include "assay/error.h"
#include "util/fd.h"
#include "util/files.h"
#include "util/try_in_child.h"

namespace assay::processes {
namespace {

// Finds a field such as "VmHWM:       1234 kB".
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

// A statm begins with the pages of address space, those that are resident, and those of the
// resident ones that are not anonymous. Neither this nor sees_each_page() allocates, because they
// run in a forked child of a multithreaded process.
std::optional<Resident> resident_in(const char* statm) {
  const Fd file(::open(statm, O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::array<char, 128> text{};
  const ssize_t n = ::read(file.get(), text.data(), text.size());
  if (n <= 0) return std::nullopt;
  const char* at = text.data();
  const char* const end = at + n;
  std::array<std::uint64_t, 3> pages{};
  for (std::uint64_t& number : pages) {
    at = std::find_if(at, end, [](char c) { return c != ' '; });
    const auto [behind, error] = std::from_chars(at, end, number);
    if (error != std::errc()) return std::nullopt;
    at = behind;
  }
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return Resident{pages[1] * page, (pages[1] - std::min(pages[1], pages[2])) * page};
}

// Touches a few pages at a time. With per-core counters up to 31 touched pages go unseen.
bool sees_each_page() {
  constexpr std::size_t kMost = 8;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t pages = 1; pages <= kMost; ++pages) {
    void* p =
        ::mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return false;
    ::madvise(p, pages * page, MADV_NOHUGEPAGE);  // a larger page would be counted whole
    const auto before = resident_in("/proc/self/statm");
    for (std::size_t i = 0; i < pages; ++i) static_cast<volatile char*>(p)[i * page] = 1;
    const auto after = resident_in("/proc/self/statm");
    const bool warms_up = pages == 1;  // the first round also touches pages of the program
    if (!before || !after) return false;
    if (warms_up) continue;
    const std::uint64_t expected = pages * page;
    if (after->sum != before->sum + expected || after->anonymous != before->anonymous + expected)
      return false;
  }
  return true;
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

void Resident::raise_to(const Resident& o) {
  sum = std::max(sum, o.sum);
  anonymous = std::max(anonymous, o.anonymous);
}

std::optional<Resident> counted_resident(pid_t pid) {
  return resident_in(fmt::format("/proc/{}/statm", pid).c_str());
}

bool counters_are_exact() {
  static const bool exact = try_in_child(sees_each_page);
  return exact;
}

std::optional<Resident> exact_resident(pid_t pid) {
  if (counters_are_exact()) return counted_resident(pid);
  std::ifstream in(fmt::format("/proc/{}/smaps_rollup", pid));
  std::stringstream text;
  text << in.rdbuf();
  const auto sum = find_field(text.str(), "Rss"), anonymous = find_field(text.str(), "Anonymous");
  if (!sum || !anonymous) return std::nullopt;
  return Resident{*sum, *anonymous};
}

// Linux folds a per-core counter into the total once it has changed by max(32, 2 * the machine's
// cores) pages.
std::uint64_t counter_error(int cores) {
  const auto machine = static_cast<std::uint64_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
  return static_cast<std::uint64_t>(cores) * std::max<std::uint64_t>(32, 2 * machine) * 4096;
}

// The kernel charges 64 pages at a time for each core and keeps the remainder in reserve.
std::uint64_t charge_error(int cores) { return static_cast<std::uint64_t>(cores + 1) * 64 * 4096; }

void reset_memory_peak(pid_t pid) {
  std::ofstream out(fmt::format("/proc/{}/clear_refs", pid));
  out << "5" << std::flush;
  if (!out) throw Error("the kernel does not reset a worker's VmHWM: memory cannot be graded here");
}

}  // namespace assay::processes
