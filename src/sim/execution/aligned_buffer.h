// Bytes aligned for vector loads and stores.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

namespace assay::sim {

class AlignedBuffer {
 public:
  static constexpr std::size_t kAlign = 64;

  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t bytes) { grow(bytes); }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::size_t size() const { return size_; }

  // Keeps the contents; what is new is undefined.
  void grow(std::size_t bytes) {
    if (bytes <= size_) return;
    const std::size_t rounded = (bytes + kAlign - 1) / kAlign * kAlign;
    std::unique_ptr<std::byte[], Free> larger(
        static_cast<std::byte*>(std::aligned_alloc(kAlign, rounded)));
    if (!larger) throw std::bad_alloc();
    if (size_ != 0) std::memcpy(larger.get(), data_.get(), size_);
    data_ = std::move(larger);
    size_ = bytes;
  }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte[], Free> data_;
  std::size_t size_ = 0;
};

}  // namespace assay::sim
