// Address space whose pages come into being, as zeros, when they are first written.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::sim {

class LazyMap {
 public:
  LazyMap() = default;
  // Throws std::runtime_error, naming `what`, when the operating system refuses. `huge_pages` asks
  // for them: fewer page faults for maps that are written densely.
  LazyMap(std::uint64_t bytes, const char* what, bool huge_pages = false);
  ~LazyMap();
  LazyMap(LazyMap&&) noexcept;
  LazyMap& operator=(LazyMap&&) noexcept;

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::uint64_t bytes() const { return bytes_; }
  // The range reads as zero again. Whole pages go back to the system.
  void clear(std::uint64_t offset, std::uint64_t bytes);

 private:
  void* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace assay::sim
