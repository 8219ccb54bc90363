// Exclusive locks between threads and between processes.
#pragma once

#include <filesystem>
#include <optional>

#include "util/fd.h"

namespace assay {

// Holds a lock on a file that is created for it and removed with it. The kernel releases the lock
// (flock) when the holder dies, so a kill leaves at most an empty, unlocked file.
class FileLock {
 public:
  // Waits until nobody else holds it. Throws Error if the file cannot be made.
  explicit FileLock(const std::filesystem::path&);
  // Absent if somebody holds it.
  static std::optional<FileLock> if_free(const std::filesystem::path&);

  FileLock(FileLock&&) noexcept = default;
  FileLock& operator=(FileLock&&) = delete;
  ~FileLock();

 private:
  FileLock(std::filesystem::path, Fd);
  std::filesystem::path path_;
  Fd fd_;
};

}  // namespace assay
