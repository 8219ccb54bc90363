#include "store/folder_lock.h"

#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <thread>

#include "util/files.h"

namespace assay::store {

bool try_lock(int fd, const std::filesystem::path& path, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kPause{2};
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP) {
      throw Error(
          fmt::format("cannot lock {}: its file system has no locks; use a folder on another, or "
                      "have it mounted with flock",
                      path.string()));
    }
    if (errno != EWOULDBLOCK) fail_with_errno("lock", path);
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

FolderLock::FolderLock(const std::filesystem::path& folder, std::chrono::milliseconds patience,
                       Writers writers) {
  if (writers == Writers::one) return;
  const std::filesystem::path path = folder / ".lock";
  fd_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!fd_) fail_with_errno("open", path);
  if (try_lock(fd_.get(), path, patience)) return;
  throw Error(fmt::format(
      "another assay has been writing in {} for more than {} s: `fuser {}` "
      "names it; end it, or use another --results",
      folder.string(), std::chrono::duration_cast<std::chrono::seconds>(patience).count(),
      path.string()));
}

// Closing alone does not unlock: a process that is just being forked has the file open too.
FolderLock::~FolderLock() {
  if (fd_) ::flock(fd_.get(), LOCK_UN);
}

}  // namespace assay::store
