#include "attack/leftovers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "sandbox/owner_tag.h"
#include "sandbox/spawner.h"
#include "util/clock.h"
#include "util/fd.h"

namespace assay::attack {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

void add_children(std::set<std::string>& found) {
  const std::string spawner = std::to_string(sandbox::spawner_pid());
  for (const std::string& line : lines_of(fmt::format("/proc/self/task/{}/children", ::getpid()))) {
    std::istringstream in(line);
    for (std::string pid; in >> pid;) {
      if (pid == spawner) continue;
      const auto name = lines_of("/proc/" + pid + "/comm");
      found.insert(fmt::format("process {} ({})", pid, name.empty() ? "?" : name.front()));
    }
  }
}

// Whether a running process uses it: owners of workplaces and cgroups hold a lock on them.
bool is_in_use(const fs::path& path) {
  const Fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  return folder && ::flock(folder.get(), LOCK_SH | LOCK_NB) != 0;
}

void add_files(const fs::path& folder, bool own, std::set<std::string>& found) {
  const std::string workplaces = sandbox::kWorkplacePrefix + sandbox::owner_tag();
  std::error_code ec;
  for (fs::directory_iterator at(folder, ec), end; !ec && at != end; at.increment(ec)) {
    const std::string name = at->path().filename();
    const bool workplace = name.starts_with(workplaces) && !is_in_use(at->path());
    const bool unfinished = own && name.ends_with(".tmp");
    if (name.find(kMark) != std::string::npos || workplace || unfinished)
      found.insert("file " + at->path().string());
  }
}

// Adds cgroups made by this process that hold no process.
void add_cgroups(std::set<std::string>& found) {
  const std::string groups = sandbox::kGroupPrefix + sandbox::owner_tag();
  for (const std::string& mount : lines_of("/proc/self/mountinfo")) {
    const std::size_t type = mount.find(" - cgroup");
    if (type == std::string::npos) continue;
    std::istringstream in(mount);
    std::string field, at;
    for (int i = 0; i < 5 && in >> field; ++i) at = field;
    std::error_code ec;
    fs::recursive_directory_iterator entry(at, fs::directory_options::skip_permission_denied, ec),
        end;
    for (; !ec && entry != end; entry.increment(ec)) {
      const std::string name = entry->path().filename();
      const bool ours = name.starts_with(groups) || name.find(kMark) != std::string::npos;
      if (!ours || !entry->is_directory(ec)) continue;
      if (lines_of(entry->path() / "cgroup.procs").empty() && !is_in_use(entry->path()))
        found.insert("cgroup " + entry->path().string());
    }
  }
}

void add_lines(const char* file, const char* what, const std::string& marked,
               std::set<std::string>& found) {
  for (const std::string& line : lines_of(file)) {
    if (line.find(marked) != std::string::npos) found.insert(std::string(what) + " " + line);
  }
}

// Takes only the id from System V's tables: the counts in later columns change.
void add_tables(std::set<std::string>& found) {
  for (const char* table : {"shm", "sem", "msg"}) {
    const auto lines = lines_of(std::string("/proc/sysvipc/") + table);
    for (std::size_t i = 1; i < lines.size(); ++i) {
      std::istringstream in(lines[i]);
      std::string key, id;
      in >> key >> id;
      found.insert(fmt::format("System V {} {}", table, id));
    }
  }
}

}  // namespace

Leftovers::Leftovers(std::vector<fs::path> folders) : folders_(std::move(folders)) {
  sandbox::owner_tag();  // fixes the tag that all children inherit
  before_ = all();
}

std::set<std::string> Leftovers::all() const {
  std::set<std::string> found;
  add_children(found);
  for (const fs::path& folder : folders_) add_files(folder, true, found);
  std::set<fs::path> shared{"/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/"};
  shared.insert(fs::temp_directory_path());
  for (const fs::path& folder : shared) add_files(folder, false, found);
  add_cgroups(found);
  add_lines("/proc/self/mountinfo", "mount", kMark, found);
  add_lines("/proc/self/mountinfo", "mount", sandbox::kWorkplacePrefix + sandbox::owner_tag(),
            found);
  add_lines("/proc/keys", "key", kMark, found);
  add_tables(found);
  return found;
}

std::vector<std::string> Leftovers::since(double patience) const {
  const double begin = steady_seconds();
  for (;;) {
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    std::vector<std::string> left;
    std::ranges::set_difference(all(), before_, std::back_inserter(left));
    if (left.empty() || steady_seconds() - begin >= patience) return left;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

}  // namespace assay::attack
