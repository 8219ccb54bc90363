#include "util/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "util/files.h"
#include "util/stop.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

bool is_still_there(const Fd& fd, const fs::path& path) {
  struct stat held {};
  struct stat named {};
  return ::fstat(fd.get(), &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

// Empty if it is not to wait and somebody else holds the lock.
Fd lock(const fs::path& path, bool wait) {
  // Polls instead of blocking, so that a request to stop is not held up by another holder.
  constexpr std::chrono::milliseconds kPause{5};
  for (;;) {
    Fd fd(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644));
    if (!fd) fail_with_errno("lock", path);
    while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) fail_with_errno("lock", path);
      if (!wait) return {};
      check_stop();
      std::this_thread::sleep_for(kPause);
    }
    // If the previous holder removed the file, the next process would lock a different one.
    if (is_still_there(fd, path)) return fd;
  }
}

}  // namespace

FileLock::FileLock(fs::path path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

FileLock::FileLock(const fs::path& path) : FileLock(path, lock(path, true)) {}

std::optional<FileLock> FileLock::if_free(const fs::path& path) {
  Fd fd = lock(path, false);
  if (!fd) return std::nullopt;
  return FileLock(path, std::move(fd));
}

FileLock::~FileLock() {
  if (fd_) ::unlink(path_.c_str());
}

}  // namespace assay
