// One writer at a time in a results folder, among all processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>

#include "util/fd.h"

namespace assay::store {

inline constexpr std::chrono::seconds kLockPatience{60};

// How many processes may write to a results folder. One: the caller makes sure that there is no
// other, and nothing is locked. So a network file system needs no locks, and a lock of a node that
// died keeps nobody waiting.
enum class Writers : std::uint8_t { many, one };

// Held for the short moments of writing. The kernel lets go of it when its holder dies, however
// that dies. Not recursive: who holds it must not ask for it again.
class FolderLock {
 public:
  // Waits for its turn; throws Error that says whom to look for when that takes longer than
  // `patience`.
  explicit FolderLock(const std::filesystem::path& folder,
                      std::chrono::milliseconds patience = kLockPatience, Writers = Writers::many);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;

 private:
  Fd fd_;
};

// Takes an exclusive flock on an open file; false when another holds it for longer than `patience`.
// `path` is for the error.
bool try_lock(int fd, const std::filesystem::path& path, std::chrono::milliseconds patience);

}  // namespace assay::store
