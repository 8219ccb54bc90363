// A size-limited cache of built libraries and objects, keyed by the hash of their inputs.
//
// Several processes may share the folder. It contains
//   <hash>.so, <hash>.o   build products; the modification time is the time of last use
//   <hash>.warnings       the compiler's warnings (build/warnings.h), treated the same way
//   <hash>.work.json      measured work of baselines (cells/kept_work.h), treated the same way
//   <hash>.files          what an object was compiled from (cli/object_cache.h), treated the same
//   <hash>.so.lock        exists while a process builds the entry
//   assay-work-*/         the workplace of a running process; sandboxed programs can reach it
//
// Entries are never used in place: each process has its own links or copies in its workplace. So
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

  // Creates the folder and removes what killed processes left. Throws Error if it is not usable.
  BuildCache(sandbox::Tier, std::filesystem::path folder, std::uint64_t limit_bytes);

  // This process's own file for the entry; it lasts as long as this object. Counts as a use.
  std::optional<std::filesystem::path> find(const std::string& name);
  // The same for a new entry. Evicts the least recently used entries when over the limit, which is
  // checked each time another 64th of it has been added.
  std::filesystem::path add(const std::string& name, std::string_view contents);
  // The two steps of add(). This process finds held entries whether or not there was room to share
  // them; hold all entries that belong together before sharing the first.
  void hold(const std::string& name, std::string_view contents);
  std::filesystem::path share(const std::string& name, std::size_t bytes);

  // A lock across all processes, held while building the entry.
  FileLock lock(const std::string& name) const;

  Usage usage() const;
  std::uint64_t limit() const { return limit_; }
  const std::filesystem::path& folder() const { return folder_; }
  // Where this process builds; sandboxed programs can reach it.
  const std::filesystem::path& workplace() const { return workplace_.path(); }

 private:
  void evict();

  std::filesystem::path folder_;
  std::uint64_t limit_;
  std::atomic<std::uint64_t> added_{0};  // bytes since the last scan of the folder
  sandbox::Workplace workplace_;
};

}  // namespace assay
