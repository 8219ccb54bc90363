#include "store/line_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include "assay/error.h"
#include "util/fd.h"
#include "util/files.h"

namespace assay::store {
namespace fs = std::filesystem;
namespace {

std::uintmax_t size_of(int fd, const fs::path& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) fail_with_errno("look at", path);
  return static_cast<std::uintmax_t>(info.st_size);
}

// The end of the last complete line.
std::uintmax_t end_of_lines(int fd, const fs::path& path) {
  std::array<char, 4096> block{};
  std::uintmax_t end = size_of(fd, path);
  while (end > 0) {
    const std::uintmax_t begin = end > block.size() ? end - block.size() : 0;
    const ssize_t n = ::pread(fd, block.data(), end - begin, static_cast<off_t>(begin));
    if (n != static_cast<ssize_t>(end - begin)) fail_with_errno("read", path);
    const std::string_view text(block.data(), static_cast<std::size_t>(n));
    if (const auto at = text.rfind('\n'); at != std::string_view::npos) return begin + at + 1;
    end = begin;
  }
  return 0;
}

void cut(int fd, std::uintmax_t size, const fs::path& path) {
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0) fail_with_errno("shorten", path);
}

}  // namespace

Lines read_lines(const fs::path& path, std::uintmax_t from) {
  Lines result;
  result.end = from;
  if (fs::exists(path) && !fs::is_regular_file(path)) throw Error(path.string() + " is not a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    if (fs::exists(path)) fail_with_errno("read", path);
    return result;
  }
  in.seekg(static_cast<std::streamoff>(from));
  std::string line;
  while (std::getline(in, line) && !in.eof()) {
    result.end += line.size() + 1;
    result.lines.push_back(std::move(line));
  }
  if (in.bad()) fail_with_errno("read", path);
  return result;
}

std::uintmax_t append_line(const fs::path& path, std::string_view line) {
  const Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd) fail_with_errno("open", path);
  const std::uintmax_t before = end_of_lines(fd.get(), path);
  if (before != size_of(fd.get(), path)) cut(fd.get(), before, path);
  const std::string text = std::string(line) + '\n';
  try {
    write_all(fd.get(), text, path);
    if (::fsync(fd.get()) != 0) fail_with_errno("flush", path);
  } catch (const Error&) {
    cut(fd.get(), before, path);
    throw;
  }
  if (before == 0) flush_folder(path.parent_path());
  return before + text.size();
}

}  // namespace assay::store
