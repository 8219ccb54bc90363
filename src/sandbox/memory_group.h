// A memory cgroup for one sandboxed program.
//
// The kernel kills a program that exceeds its group's limit and says that it did, and it knows the
// group's peak however briefly the memory was held. Version 2 is used where the harness's own
// group, or its parent, hands the memory controller on; version 1 where that is mounted. Without
// either, the limits are on address space and the account is that of resident pages.
//
// A group is locked while it is in use. The groups of a killed harness are empty and unlocked, and
// the next harness removes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "util/fd.h"

namespace assay::sandbox {

// Where groups can be made.
struct MemoryGroups {
  int version = 0;               // 1 or 2; 0: nowhere
  std::filesystem::path folder;  // in which groups are made
  std::string why_not;           // when version is 0
  // The least limit of the groups above, the harness's own included.
  std::optional<std::uint64_t> limit_bytes;
};

// Found by trying, once for the process.
const MemoryGroups& memory_groups();

// For tests: the same, from the given texts of /proc/self/mountinfo and /proc/self/cgroup (proc(5))
// and under another root folder.
MemoryGroups find_memory_groups(const std::string& mountinfo, const std::string& cgroup,
                                const std::filesystem::path& root);

// Removes the groups that killed harnesses left. memory_groups() has already done so.
void remove_abandoned_groups(const std::filesystem::path& folder);

class MemoryGroup {
 public:
  // A new group with a limit. Null where none can be made.
  static std::unique_ptr<MemoryGroup> make(const MemoryGroups&, std::uint64_t limit_bytes);
  ~MemoryGroup();
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;

  int join_fd() const { return join_.get(); }  // Program::group_fd
  const std::filesystem::path& folder() const { return folder_; }

  // Bytes charged now, and at most since the last reset (since the beginning, where the kernel
  // cannot reset the peak). Nothing when the kernel keeps no such account.
  std::optional<std::uint64_t> usage() const;
  std::optional<std::uint64_t> peak() const;
  void reset_peak();
  // Bytes of file pages. They are charged to the program that reads them first.
  std::uint64_t file_bytes() const;
  // Whether the kernel killed a program of the group at its limit.
  bool ran_out() const;

 private:
  MemoryGroup(int version, std::filesystem::path folder, Fd lock, Fd join);

  int version_;
  std::filesystem::path folder_;
  Fd lock_, join_, peak_;
};

}  // namespace assay::sandbox
