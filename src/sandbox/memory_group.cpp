#include "sandbox/memory_group.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>
#include <vector>

#include "sandbox/owner_tag.h"

namespace assay::sandbox {
namespace fs = std::filesystem;
namespace {

std::string contents(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

bool write_value(const fs::path& path, const std::string& value) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), value.data(), value.size()) == static_cast<ssize_t>(value.size());
}

std::optional<std::uint64_t> number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

// The value of "key value" in a file of such lines.
std::optional<std::uint64_t> keyed(const fs::path& path, const std::string& key) {
  std::istringstream in(contents(path));
  std::string name;
  for (std::uint64_t value; in >> name >> value;) {
    if (name == key) return value;
  }
  return std::nullopt;
}

bool has_word(const std::string& text, const std::string& word, char separator = ' ') {
  std::istringstream in(text);
  for (std::string one; std::getline(in, one, separator);) {
    while (!one.empty() && one.back() == '\n') one.pop_back();
    if (one == word) return true;
  }
  return false;
}

struct Mounted {
  int version = 0;
  fs::path folder;  // where this process's own group is
};

// "36 35 98:0 /root /mount options - type source super-options": where groups of the version lie.
std::optional<Mounted> mounted(int version, const std::string& mountinfo,
                               const std::string& own_group, const fs::path& root) {
  std::istringstream lines(mountinfo);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    std::istringstream before(line), after(line.substr(dash + 3));
    std::string id, parent, device, top, point, type, source, options;
    before >> id >> parent >> device >> top >> point;
    after >> type >> source >> options;
    const bool wanted =
        version == 2 ? type == "cgroup2" : type == "cgroup" && has_word(options, "memory", ',');
    if (!wanted) continue;
    // A mount may show a part of the tree only. A group outside that part cannot be reached.
    const fs::path relative = fs::path(own_group).lexically_relative(top);
    if (relative.empty() || *relative.begin() == "..") continue;
    return Mounted{version, (root / point.substr(1) / relative).lexically_normal()};
  }
  return std::nullopt;
}

// "4:memory:/path" and "0::/path".
std::string own_group(int version, const std::string& cgroup) {
  std::istringstream lines(cgroup);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool wanted = version == 2 ? controllers.empty() : has_word(controllers, "memory", ',');
    if (wanted) return line.substr(second + 1);
  }
  return {};
}

// A group of version 2 whose members may have the memory controller: our own, or the one above.
std::optional<fs::path> handing_on(const fs::path& own) {
  for (const fs::path& folder : {own, own.parent_path()}) {
    if (has_word(contents(folder / "cgroup.subtree_control"), "memory") &&
        ::access(folder.c_str(), W_OK) == 0) {
      return folder;
    }
  }
  return std::nullopt;
}

// The least limit from a folder upwards.
std::optional<std::uint64_t> limit_above(int version, fs::path folder) {
  std::optional<std::uint64_t> least;
  const char* file = version == 2 ? "memory.max" : "memory.limit_in_bytes";
  for (; folder.has_relative_path(); folder = folder.parent_path()) {
    const std::optional<std::uint64_t> limit = number(contents(folder / file));
    if (limit && (!least || *limit < *least)) least = limit;
  }
  return least;
}

Fd lock_group(const fs::path& folder) {
  Fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat held {};
  struct stat named {};
  if (!fd || ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) return {};
  // Another harness may have removed it as abandoned before it was locked here.
  const bool same = ::fstat(fd.get(), &held) == 0 && ::lstat(folder.c_str(), &named) == 0 &&
                    held.st_ino == named.st_ino;
  return same ? std::move(fd) : Fd();
}

MemoryGroups try_out(MemoryGroups groups) {
  if (groups.version == 0) return groups;
  remove_abandoned_groups(groups.folder);
  if (MemoryGroup::make(groups, std::uint64_t{1} << 30) == nullptr) {
    groups.why_not = fmt::format("groups cannot be made in {}", groups.folder.string());
    groups.version = 0;
  }
  return groups;
}

}  // namespace

void remove_abandoned_groups(const fs::path& folder) {
  std::error_code ec;
  std::vector<fs::path> found;
  for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec)) {
    if (at->path().filename().string().starts_with(kGroupPrefix)) found.push_back(at->path());
  }
  for (const fs::path& path : found) {
    if (const Fd lock = lock_group(path)) ::rmdir(path.c_str());  // fails while it has members
  }
}

MemoryGroups find_memory_groups(const std::string& mountinfo, const std::string& cgroup,
                                const fs::path& root) {
  MemoryGroups groups;
  if (const auto two = mounted(2, mountinfo, own_group(2, cgroup), root)) {
    groups.why_not = fmt::format("{} does not hand the memory controller on to groups within it",
                                 two->folder.string());
    if (const auto folder = handing_on(two->folder)) {
      groups = {
          .version = 2, .folder = *folder, .why_not = "", .limit_bytes = limit_above(2, *folder)};
      return groups;
    }
  }
  if (const auto one = mounted(1, mountinfo, own_group(1, cgroup), root)) {
    if (::access(one->folder.c_str(), W_OK) == 0) {
      groups = {.version = 1,
                .folder = one->folder,
                .why_not = "",
                .limit_bytes = limit_above(1, one->folder)};
      return groups;
    }
    groups.why_not = fmt::format("{} is not ours to write to", one->folder.string());
  }
  if (groups.why_not.empty()) groups.why_not = "no memory cgroups are mounted";
  return groups;
}

const MemoryGroups& memory_groups() {
  static const MemoryGroups instance = try_out(
      find_memory_groups(contents("/proc/self/mountinfo"), contents("/proc/self/cgroup"), "/"));
  return instance;
}

std::unique_ptr<MemoryGroup> MemoryGroup::make(const MemoryGroups& groups,
                                               std::uint64_t limit_bytes) {
  if (groups.version == 0) return nullptr;
  Fd lock;
  fs::path folder;
  for (int attempt = 0; attempt < 3 && !lock; ++attempt) {
    std::string name =
        (groups.folder / fmt::format("{}{}XXXXXX", kGroupPrefix, owner_tag())).string();
    if (::mkdtemp(name.data()) == nullptr) return nullptr;
    folder = name;
    lock = lock_group(folder);
    if (!lock) ::rmdir(folder.c_str());
  }
  if (!lock) return nullptr;
  const std::string limit = std::to_string(limit_bytes);
  bool limited;
  if (groups.version == 2) {
    write_value(folder / "memory.swap.max", "0");  // absent where there is no swap
    limited = write_value(folder / "memory.max", limit);
  } else {
    limited = write_value(folder / "memory.limit_in_bytes", limit);
    write_value(folder / "memory.memsw.limit_in_bytes", limit);  // likewise
  }
  Fd join(::open((folder / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  if (!limited || !join) {
    ::rmdir(folder.c_str());
    return nullptr;
  }
  return std::unique_ptr<MemoryGroup>(
      new MemoryGroup(groups.version, folder, std::move(lock), std::move(join)));
}

MemoryGroup::MemoryGroup(int version, fs::path folder, Fd lock, Fd join)
    : version_(version),
      folder_(std::move(folder)),
      lock_(std::move(lock)),
      join_(std::move(join)) {
  // The kernel resets the peak for the open file that asked only, so the file stays open.
  const char* file = version_ == 2 ? "memory.peak" : "memory.max_usage_in_bytes";
  peak_ = Fd(::open((folder_ / file).c_str(), O_RDWR | O_CLOEXEC));
  if (!peak_) peak_ = Fd(::open((folder_ / file).c_str(), O_RDONLY | O_CLOEXEC));
}

// Killed members leave a moment later. A group that the kernel keeps busy for longer is left to the
// next harness.
MemoryGroup::~MemoryGroup() {
  using namespace std::chrono_literals;
  for (int attempt = 0; attempt < 50 && ::rmdir(folder_.c_str()) != 0 && errno == EBUSY;
       ++attempt) {
    std::this_thread::sleep_for(2ms);
  }
}

std::optional<std::uint64_t> MemoryGroup::usage() const {
  return number(contents(folder_ / (version_ == 2 ? "memory.current" : "memory.usage_in_bytes")));
}

std::optional<std::uint64_t> MemoryGroup::peak() const {
  char text[32];
  const ssize_t n = peak_ ? ::pread(peak_.get(), text, sizeof text, 0) : 0;
  return n > 0 ? number(std::string(text, static_cast<std::size_t>(n))) : std::nullopt;
}

void MemoryGroup::reset_peak() {
  if (peak_) [[maybe_unused]]
    const auto n = ::pwrite(peak_.get(), "0", 1, 0);
}

std::uint64_t MemoryGroup::file_bytes() const {
  return keyed(folder_ / "memory.stat", version_ == 2 ? "file" : "cache").value_or(0);
}

bool MemoryGroup::ran_out() const {
  const char* file = version_ == 2 ? "memory.events" : "memory.oom_control";
  return keyed(folder_ / file, "oom_kill").value_or(0) > 0;
}

}  // namespace assay::sandbox
