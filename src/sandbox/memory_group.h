// Memory that a sandboxed program and nobody else is charged for: a memory cgroup of its own.
//
// Where the kernel keeps such accounts and lets us open one, a program that takes too much is ended
// by the kernel, which says so, and its peak is known however it comes and goes. Both versions are
// used: version 2 where our own group, or the one above it, hands the memory controller on; version
// 1 where that is what is mounted. Without either there are limits on address space and the
// kernel's account of resident pages.
//
// A group is locked while it is in use. Those of a harness that was killed are empty and unlocked;
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
  // That the groups above grant, the harness's own included.
  std::optional<std::uint64_t> limit_bytes;
};

// Tried out once: what is found is kept.
const MemoryGroups& memory_groups();

// The same for other texts than those of /proc/self, and another root folder: for tests. What
// `mountinfo` and `cgroup` say, in the forms of proc(5).
MemoryGroups find_memory_groups(const std::string& mountinfo, const std::string& cgroup,
                                const std::filesystem::path& root);

// Removes groups of harnesses that have ended without doing so. memory_groups() has done it.
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

  // Bytes charged now, and the most since the last reset or, where the kernel cannot reset it,
  // ever. Nothing when the kernel keeps no such account.
  std::optional<std::uint64_t> usage() const;
  std::optional<std::uint64_t> peak() const;
  void reset_peak();
  // Pages of files, which are among the bytes charged when the program was the first to read them.
  std::uint64_t file_bytes() const;
  // Whether the kernel ended a program here because the limit was reached.
  bool ran_out() const;

 private:
  MemoryGroup(int version, std::filesystem::path folder, Fd lock, Fd join);

  int version_;
  std::filesystem::path folder_;
  Fd lock_, join_, peak_;
};

}  // namespace assay::sandbox
