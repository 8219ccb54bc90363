#include "util/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "assay/error.h"
#include "util/fd.h"
#include "util/remedy.h"
#include "util/transient_fault.h"

namespace assay {
namespace fs = std::filesystem;
namespace {

// A new file next to `path`. Closed on destruction, and removed unless it was renamed.
struct TemporaryFile {
  explicit TemporaryFile(const fs::path& beside, mode_t mode = 0644) {
    // Processes that share the folder but not their pid namespace may choose the same name.
    static std::atomic<unsigned> next{0};
    do {
      path = beside.string() + fmt::format(".{}-{}.tmp", ::getpid(), next++);
      fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    } while (fd < 0 && errno == EEXIST);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (fd < 0) return;
    ::close(fd);
    if (!renamed) ::unlink(path.c_str());
  }
  fs::path path;
  int fd = -1;
  bool renamed = false;
};

}  // namespace

void fail_with_errno(Action action, const fs::path& path) {
  const int error = errno;
  throw_errno(fmt::format("cannot {} {}", action.words(), path.string()), error);
}

void write_all(int fd, std::string_view contents, const fs::path& path) {
  while (!contents.empty()) {
    const ssize_t n = ::write(fd, contents.data(), contents.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_with_errno("write", path);
    contents.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string read_file(const fs::path& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) fail_with_errno("read", path);
  struct stat info {};
  const bool sized = ::fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode);
  constexpr std::size_t kLeast = 65536;
  // Files of /proc and /sys have no size and come in one piece.
  const std::size_t expected = sized ? static_cast<std::size_t>(info.st_size) + 1 : 0;
  std::string contents(expected > 1 ? expected : kLeast, '\0');
  std::size_t size = 0;
  for (;;) {
    if (size == contents.size()) contents.resize(std::max(kLeast, 2 * size));
    const ssize_t n = ::read(fd.get(), contents.data() + size, contents.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_with_errno("read", path);
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  contents.resize(size);
  return contents;
}

void write_file_atomically(const fs::path& path, std::string_view contents, mode_t mode) {
  TemporaryFile tmp(path, mode);
  if (tmp.fd < 0) fail_with_errno("create", tmp.path);
  write_all(tmp.fd, contents, path);
  if (::fsync(tmp.fd) != 0) fail_with_errno("flush", path);
  if (::rename(tmp.path.c_str(), path.c_str()) != 0) fail_with_errno("replace", path);
  tmp.renamed = true;
  flush_folder(path.parent_path());
}

void require_writable_directory(const fs::path& dir) {
  std::error_code ec;
  fs::create_directories(dir, ec);
  if (ec) {
    throw Error(fmt::format("cannot create folder {}: {}{}", dir.string(), ec.message(),
                            remedy(ec.value())));
  }
  const TemporaryFile probe(dir / ".probe");
  if (probe.fd < 0) fail_with_errno("write in folder", dir);
}

void touch(const fs::path& path) noexcept { ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

void write_file_alone(const fs::path& path, std::string_view contents) {
  const std::string temporary = path.string() + ".tmp";
  try {
    const Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!fd) fail_with_errno("create", temporary);
    write_all(fd.get(), contents, path);
    if (::fsync(fd.get()) != 0) fail_with_errno("flush", path);
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail_with_errno("replace", path);
  } catch (const Error&) {
    ::unlink(temporary.c_str());
    throw;
  }
  flush_folder(path.parent_path());
}

void replace_file(const fs::path& path, const fs::path& temporary) {
  const Fd fd(::open(temporary.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) fail_with_errno("flush", temporary);
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail_with_errno("replace", path);
  flush_folder(path.parent_path());
}

void flush_folder(const fs::path& folder) {
  const fs::path named = folder.empty() ? fs::path(".") : folder;
  const Fd fd(::open(named.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) fail_with_errno("open folder", named);
  // Some file systems have no directory to flush.
  if (::fsync(fd.get()) != 0 && errno != EINVAL) fail_with_errno("flush folder", named);
}

void create_folder(const fs::path& folder) {
  if (folder.empty() || fs::is_directory(folder)) return;
  create_folder(folder.parent_path());
  if (::mkdir(folder.c_str(), 0777) == 0) {
    flush_folder(folder.parent_path());
  } else if (errno != EEXIST || !fs::is_directory(folder)) {
    fail_with_errno("create folder", folder);
  }
}

}  // namespace assay
