// Finds what a process leaves behind when it is gone: other processes, files, cgroups, mounts,
// keys, shared memory.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace assay::attack {

// The attacks put this into the name of everything they try to leave behind.
inline constexpr char kMark[] = "assay-attack";

// A snapshot of what exists now, each item described in words.
class Leftovers {
 public:
  // In shared folders (/tmp, /var/tmp, TMPDIR, /dev/shm, /dev/mqueue, /) only marked files and this
  // process's workplaces count, because others, including other harnesses, write there too. In
  // `folders`, which nobody else writes to, half-written files count as well. Of cgroups, only
  // marked ones and those of this process and its children count.
  explicit Leftovers(std::vector<std::filesystem::path> folders);

  // Items that appeared since construction and still exist. Waits up to `patience` seconds for them
  // to disappear, because the kernel is slow to clean up. Reaps dead children of this process.
  std::vector<std::string> since(double patience) const;

 private:
  std::set<std::string> all() const;

  std::vector<std::filesystem::path> folders_;
  std::set<std::string> before_;
};

// From now on, orphans of this process's children become its own children, so that they are found.
void adopt_orphans();

}  // namespace assay::attack
