// Bytes aligned for vector loads and stores.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace assay::sim {

class AlignedBuffer {
 public:
  static constexpr std::size_t kAlign = 64;
  // Total for a process: what kernels request through registers, calls and arrays must not exhaust
  // the machine.
  static constexpr std::size_t kMostInUse = std::size_t{3} << 30;

  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t bytes) { grow(bytes); }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

  // Keeps the contents; new bytes are undefined. Throws std::bad_alloc.
  void grow(std::size_t bytes) {
    if (bytes <= size_) return;
    const std::size_t rounded = (bytes + kAlign - 1) / kAlign * kAlign;
    std::unique_ptr<std::byte[], Free> larger(take(rounded), Free{rounded});
    if (size_ != 0) std::memcpy(larger.get(), data_.get(), size_);
    data_ = std::move(larger);
    size_ = bytes;
  }

 private:
  struct Free {
    std::size_t bytes;
    Free() : bytes(0) {}
    explicit Free(std::size_t n) : bytes(n) {}
    void operator()(std::byte* p) const {
      std::free(p);
      in_use_ -= bytes;
    }
  };
  static std::byte* take(std::size_t bytes) {
    void* const p = in_use_.fetch_add(bytes) <= kMostInUse - bytes
                        ? std::aligned_alloc(kAlign, bytes)
                        : nullptr;
    if (p == nullptr) {
      in_use_ -= bytes;
      throw std::bad_alloc();
    }
    return static_cast<std::byte*>(p);
  }

  static inline std::atomic<std::size_t> in_use_{0};
  std::unique_ptr<std::byte[], Free> data_;
  std::size_t size_ = 0;
};

}  // namespace assay::sim
