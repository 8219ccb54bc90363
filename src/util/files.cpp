#include "util/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

namespace assay {
namespace fs = std::filesystem;
namespace {

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

void write_by_rename(const fs::path& path, const std::string& ending, std::string_view contents) {
  TemporaryFile tmp{path.string() + ending};
  tmp.fd = ::open(tmp.path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (tmp.fd < 0) fail_with_errno("create", tmp.path);
  write_all(tmp.fd, contents, path);
  if (::fsync(tmp.fd) != 0) fail_with_errno("flush", path);
  if (::rename(tmp.path.c_str(), path.c_str()) != 0) fail_with_errno("replace", path);
  tmp.renamed = true;
  flush_folder(path.parent_path());
}

}  // namespace

void fail_with_errno(std::string_view action, const fs::path& path) {
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

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail_with_errno("read", path);
  std::ostringstream out;
  out << in.rdbuf();
  if (in.bad()) fail_with_errno("read", path);
  return std::move(out).str();
}

void write_file_atomically(const fs::path& path, std::string_view contents) {
  write_by_rename(path, fmt::format(".{}.tmp", ::getpid()), contents);
}

void write_file_alone(const fs::path& path, std::string_view contents) {
  write_by_rename(path, ".tmp", contents);
}

void flush_folder(const fs::path& folder) {
  const fs::path named = folder.empty() ? fs::path(".") : folder;
  const int fd = ::open(named.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail_with_errno("open folder", named);
  const int flushed = ::fsync(fd);
  ::close(fd);
  // Some file systems keep no list that could be flushed.
  if (flushed != 0 && errno != EINVAL) fail_with_errno("flush folder", named);
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

void require_writable_directory(const fs::path& dir) {
  std::error_code ec;
  fs::create_directories(dir, ec);
  if (ec) throw Error(fmt::format("cannot create folder {}: {}", dir.string(), ec.message()));
  // Always the same name: what a kill leaves is taken away by the next.
  TemporaryFile probe{dir / ".probe.tmp"};
  probe.fd = ::open(probe.path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (probe.fd < 0) fail_with_errno("write in folder", dir);
}

}  // namespace assay
