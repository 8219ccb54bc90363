// Built libraries and objects, kept by the hash of what they were made from, up to a limit.
//
// Several processes may share the folder. In it lie
//   <hash>.so, <hash>.o   what was built; the time of last use is that of last modification
//   <hash>.warnings    what the compiler warned of (build/warnings.h), treated alike
//   <hash>.work.json      what the run found out about baselines (cells/kept_work.h), treated alike
//   <hash>.so.lock        while somebody builds it
//   assay-work-*/         the workplace of a running process, where sandboxed programs can reach it
//
// Nobody uses an entry itself: each process has links, or copies, of its own in its workplace. So
// the cache may remove any entry at any time, and entries may lie where no sandbox can reach them.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "sandbox/workplace.h"
#include "util/file_lock.h"

namespace assay {

constexpr std::uint64_t kDefaultCacheLimit = 4ull << 30;  // bytes

// Thread-safe.
class BuildCache {
 public:
  struct Usage {
    std::uint64_t bytes = 0;  // on disk, of all entries
    std::size_t entries = 0;
  };

  // Creates the folder and clears away what killed processes left. Throws Error when it is not
  // usable.
  BuildCache(sandbox::Tier, std::filesystem::path folder, std::uint64_t limit_bytes);

  // This process's own file for the entry; it lasts as long as this object. Counts as a use.
  std::optional<std::filesystem::path> find(const std::string& name);
  // The same for a new entry. What was used least recently goes when the limit is passed, which is
  // looked at after each 64th of it.
  std::filesystem::path add(const std::string& name, std::string_view contents);
  // The two steps of add(). What is held is found by this process, whether or not there was room to
  // share it: entries that belong together are all held before the first is shared.
  void hold(const std::string& name, std::string_view contents);
  std::filesystem::path share(const std::string& name, std::size_t bytes);

  // Held by who builds the entry, among all processes.
  FileLock lock(const std::string& name) const;

  Usage usage() const;
  std::uint64_t limit() const { return limit_; }
  const std::filesystem::path& folder() const { return folder_; }
  // Where this process builds: sandboxed programs can reach it.
  const std::filesystem::path& workplace() const { return workplace_.path(); }

 private:
  void evict();

  std::filesystem::path folder_;
  std::uint64_t limit_;
  std::atomic<std::uint64_t> added_{0};  // bytes since the last look at the whole folder
  sandbox::Workplace workplace_;
};

}  // namespace assay
