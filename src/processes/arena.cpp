#include "processes/arena.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

#include "util/transient_fault.h"

namespace assay::processes {

Arena::Arena(const char* name, std::size_t bytes, Access access)
    : fd_(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING)),
      bytes_((bytes + 4095) / 4096 * 4096) {
  if (!fd_ || ::ftruncate(fd_.get(), static_cast<off_t>(bytes_)) != 0) {
    throw_errno(fmt::format("cannot make {} bytes of shared memory", bytes_));
  }
  void* p = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_.get(), 0);
  if (p == MAP_FAILED) {
    throw_errno(fmt::format("cannot map {} bytes of shared memory", bytes_));
  }
  data_ = static_cast<std::byte*>(p);
  // FUTURE_WRITE is sealed after the harness's own writable mapping exists.
  int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (access == Access::worker_reads) seals |= F_SEAL_FUTURE_WRITE;
  if (::fcntl(fd_.get(), F_ADD_SEALS, seals) != 0) {
    throw_errno("cannot seal shared memory");
  }
}

Arena::Arena(Arena&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

std::uint64_t Arena::written() const {
  constexpr std::uint64_t kUnit = 512;  // of st_blocks: stat(2)
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0) throw_errno("cannot look at shared memory");
  return static_cast<std::uint64_t>(info.st_blocks) * kUnit;
}

Arena::~Arena() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

}  // namespace assay::processes
