// Memory that tests and fuzzers use as an arena.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <span>

namespace assay::testing {

// A shared anonymous mapping the size of an arena. Windows can be opened in it, as in a real one.
class Arena {
 public:
  explicit Arena(std::size_t bytes)
      : bytes_(bytes),
        data_(
            ::mmap(nullptr, mapped(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (data_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~Arena() { ::munmap(data_, mapped()); }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::span<std::byte> bytes() const { return {data(), bytes_}; }

 private:
  std::size_t mapped() const { return std::max<std::size_t>(bytes_, 1); }

  std::size_t bytes_;
  void* data_;
};

}  // namespace assay::testing
