#include "util/plain_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "util/fd.h"
#include "util/transient_fault.h"

namespace assay {
namespace {

// Why a file was not read; throws where that is no fault of the file.
PlainFile not_read(int folder, const std::string& name) {
  const int error = errno;
  if (is_fault_of_machine(error)) {
    std::error_code unknown;
    const auto path =
        std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", folder), unknown);
    throw_errno(fmt::format("cannot read {}", (path / name).string()), error);
  }
  return {"", fmt::format("cannot be read: {}", std::strerror(error))};
}

}  // namespace

PlainFile read_plain_file(int folder, const std::string& name, std::size_t limit) {
  const Fd fd(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!fd) {
    if (errno == ELOOP) return {"", "is a symbolic link"};
    return not_read(folder, name);
  }
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return not_read(folder, name);
  if (!S_ISREG(info.st_mode)) return {"", "is not a regular file"};
  if (info.st_nlink > 1) return {"", "is a hard link to another file"};
  const auto too_large = [&] {
    return PlainFile{"", fmt::format("is larger than {} MiB", limit >> 20)};
  };
  if (static_cast<std::size_t>(info.st_size) > limit) return too_large();
  PlainFile file;
  file.contents.resize(static_cast<std::size_t>(info.st_size) + 1);
  std::size_t size = 0;
  ssize_t n;
  while ((n = ::read(fd.get(), file.contents.data() + size, file.contents.size() - size)) > 0) {
    size += static_cast<std::size_t>(n);
    if (size > limit) return too_large();  // it grew while it was read
    if (size == file.contents.size()) file.contents.resize(2 * size);
  }
  if (n < 0) return not_read(folder, name);
  file.contents.resize(size);
  return file;
}

}  // namespace assay
