// Allows one writer at a time in a results folder, across all processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>

#include "util/fd.h"

namespace assay::store {

inline constexpr std::chrono::seconds kLockPatience{60};

// How many processes may write to a results folder. With `one`, the caller ensures that there is no
// other, and nothing is locked. Then a network file system needs no locks, and a lock held by a
// dead node blocks nobody.
enum class Writers : std::uint8_t { many, one };

// Held briefly, while writing. The kernel releases it when its holder dies, however that happens.
// Not recursive: the holder must not ask for it again.
class FolderLock {
 public:
  // Waits for its turn. Throws an Error that says whom to look for if that takes longer than
  // `patience`.
  explicit FolderLock(const std::filesystem::path& folder,
                      std::chrono::milliseconds patience = kLockPatience, Writers = Writers::many);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;

 private:
  Fd fd_;
};

// Takes an exclusive flock on an open file. False if another holds it for longer than `patience`.
// `path` is for the error.
bool try_lock(int fd, const std::filesystem::path& path, std::chrono::milliseconds patience);

}  // namespace assay::store
