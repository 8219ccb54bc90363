#include "util/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

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

// Closes and removes the temporary file unless the write succeeded.
struct TemporaryFile {
  fs::path path;
  int fd = -1;
  bool renamed = false;
  ~TemporaryFile() {
    if (fd >= 0) ::close(fd);
    if (!renamed) ::unlink(path.c_str());
  }
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
  TemporaryFile tmp{path.string() + fmt::format(".{}.tmp", ::getpid())};
  tmp.fd = ::open(tmp.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
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
  const TemporaryFile probe{dir / fmt::format(".probe.{}.tmp", ::getpid()),
                            ::open((dir / fmt::format(".probe.{}.tmp", ::getpid())).c_str(),
                                   O_WRONLY | O_CREAT | O_CLOEXEC, 0600)};
  if (probe.fd < 0) fail_with_errno("write in folder", dir);
}

}  // namespace assay
