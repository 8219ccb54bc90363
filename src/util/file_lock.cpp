#include "util/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "util/files.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

bool is_still_there(const Fd& fd, const fs::path& path) {
  struct stat held {};
  struct stat named {};
  return ::fstat(fd.get(), &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

// No descriptor when `operation` does not wait and somebody else holds the lock.
Fd lock(const fs::path& path, int operation) {
  for (;;) {
    Fd fd(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644));
    if (!fd) fail_with_errno("lock", path);
    int rc;
    do {
      rc = ::flock(fd.get(), operation);
    } while (rc != 0 && errno == EINTR);
    if (rc != 0 && errno == EWOULDBLOCK) return {};
    if (rc != 0) fail_with_errno("lock", path);
    // Who held it before has removed the file: whoever comes next would lock another one.
    if (is_still_there(fd, path)) return fd;
  }
}

}  // namespace

FileLock::FileLock(fs::path path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

FileLock::FileLock(const fs::path& path) : FileLock(path, lock(path, LOCK_EX)) {}

std::optional<FileLock> FileLock::if_free(const fs::path& path) {
  Fd fd = lock(path, LOCK_EX | LOCK_NB);
  if (!fd) return std::nullopt;
  return FileLock(path, std::move(fd));
}

FileLock::~FileLock() {
  if (fd_) ::unlink(path_.c_str());
}

}  // namespace assay
