// Address space whose pages are created, as zeros, when they are first written.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::sim {

class LazyMap {
 public:
  LazyMap() = default;
  // Throws std::runtime_error, naming `what`, if the operating system refuses. `huge_pages`
  // requests huge pages: fewer page faults for densely written maps.
  LazyMap(std::uint64_t bytes, const char* what, bool huge_pages = false);
  ~LazyMap();
  LazyMap(LazyMap&&) noexcept;
  LazyMap& operator=(LazyMap&&) noexcept;

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::uint64_t bytes() const { return bytes_; }
  // Makes the range read as zero again. Whole pages go back to the system.
  void clear(std::uint64_t offset, std::uint64_t bytes);

 private:
  void* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace assay::sim
