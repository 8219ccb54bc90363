#include "sim/memory/lazy_map.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace assay::sim {
namespace {

// Smaller ranges are cleared by writing zeros.
constexpr std::uint64_t kPage = 4096;

}  // namespace

LazyMap::LazyMap(std::uint64_t bytes, const char* what, bool huge_pages) : bytes_(bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    throw std::runtime_error(fmt::format("cannot reserve {} bytes of address space for {}: {}",
                                         bytes, what, std::strerror(errno)));
  }
  data_ = p;
  if (huge_pages) madvise(data_, bytes_, MADV_HUGEPAGE);  // only advice
}

LazyMap::~LazyMap() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

LazyMap::LazyMap(LazyMap&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

LazyMap& LazyMap::operator=(LazyMap&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void LazyMap::clear(std::uint64_t offset, std::uint64_t bytes) {
  auto* begin = as<std::byte>() + offset;
  const std::uint64_t head = std::min(bytes, (kPage - offset % kPage) % kPage);
  const std::uint64_t pages = (bytes - head) / kPage * kPage;
  std::memset(begin, 0, head);
  if (pages != 0) madvise(begin + head, pages, MADV_DONTNEED);
  std::memset(begin + head + pages, 0, bytes - head - pages);
}

}  // namespace assay::sim
