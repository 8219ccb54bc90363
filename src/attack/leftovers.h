// What a process leaves behind when it is gone: other processes, files, cgroups, mounts, keys,
// shared memory.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace assay::attack {

// What the attacks write into the name of whatever they try to leave.
inline constexpr char kMark[] = "assay-attack";

// What is there now, each thing in words that name it.
class Leftovers {
 public:
  // In the folders that all share (/tmp, /var/tmp, TMPDIR, /dev/shm, /dev/mqueue) only what bears
  // the mark is looked at, and this process's workplaces: others write there too, other harnesses
  // among them. In `folders`, which nobody else writes to, also half-written files. Of memory
  // groups those of this process and its children.
  explicit Leftovers(std::vector<std::filesystem::path> folders);

  // What has come since the construction and is still there. Waits up to `patience` seconds for it
  // to go: the kernel takes its time with what has ended. Ended children of this process that
  // nobody waited for are taken away.
  std::vector<std::string> since(double patience) const;

 private:
  std::set<std::string> all() const;

  std::vector<std::filesystem::path> folders_;
  std::set<std::string> before_;
};

// From now on, orphans of this process's children become its own children, so that they are seen.
void adopt_orphans();

}  // namespace assay::attack
