#include "util/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace assay {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail_with_errno(std::string_view action, const fs::path& path) {
  throw Error(fmt::format("cannot {} {}: {}", action, path.string(), std::strerror(errno)));
}

void write_all(int fd, std::string_view contents, const fs::path& path) {
  while (!contents.empty()) {
    const ssize_t n = ::write(fd, contents.data(), contents.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_with_errno("write", path);
    contents.remove_prefix(static_cast<std::size_t>(n));
  }
}

// A new file beside `path`. Closed, and removed unless it was renamed.
struct TemporaryFile {
  explicit TemporaryFile(const fs::path& beside) {
    // Processes that share the folder without sharing their ids may choose the same name.
    static std::atomic<unsigned> next{0};
    do {
      path = beside.string() + fmt::format(".{}-{}.tmp", ::getpid(), next++);
      fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
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

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail_with_errno("read", path);
  std::ostringstream out;
  out << in.rdbuf();
  if (in.bad()) fail_with_errno("read", path);
  return std::move(out).str();
}

void write_file_atomically(const fs::path& path, std::string_view contents) {
  TemporaryFile tmp(path);
  if (tmp.fd < 0) fail_with_errno("create", tmp.path);
  write_all(tmp.fd, contents, path);
  if (::fsync(tmp.fd) != 0) fail_with_errno("flush", path);
  if (::rename(tmp.path.c_str(), path.c_str()) != 0) fail_with_errno("replace", path);
  tmp.renamed = true;
}

void require_writable_directory(const fs::path& dir) {
  std::error_code ec;
  fs::create_directories(dir, ec);
  if (ec) throw Error(fmt::format("cannot create folder {}: {}", dir.string(), ec.message()));
  const TemporaryFile probe(dir / ".probe");
  if (probe.fd < 0) fail_with_errno("write in folder", dir);
}

void touch(const fs::path& path) noexcept { ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0); }

}  // namespace assay
