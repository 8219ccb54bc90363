// Exclusive locks between threads and between processes.
#pragma once

#include <filesystem>
#include <optional>

#include "util/fd.h"

namespace assay {

// Holds a lock on a file that is made for it and removed with it. The kernel releases it when the
// holder dies (flock), so a kill leaves at most an empty file that nobody holds.
class FileLock {
 public:
  // Waits until nobody else holds it. Throws Error when the file cannot be made.
  explicit FileLock(const std::filesystem::path&);
  // Nothing when somebody holds it.
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
