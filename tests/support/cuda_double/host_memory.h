// Page-locked host memory, as cuMemHostAlloc returns it. The device has it at the same addresses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "support/cuda_double/address_space.h"

namespace assay::gpu {

class HostMemory {
 public:
  // Zeroed and page-aligned. Throws std::bad_alloc.
  void* allocate(std::size_t bytes) {
    void* const memory = ::operator new(bytes, kPage);
    blocks_.push_back({std::unique_ptr<void, Free>(memory), bytes});
    return std::memset(memory, 0, bytes);
  }
  bool contains(const Range& range) const {
    return std::ranges::any_of(blocks_, [&](const Block& b) {
      return Range{reinterpret_cast<std::uintptr_t>(b.memory.get()), b.bytes}.contains(range);
    });
  }

 private:
  static constexpr std::align_val_t kPage{4096};
  struct Free {
    void operator()(void* memory) const { ::operator delete(memory, kPage); }
  };
  struct Block {
    std::unique_ptr<void, Free> memory;
    std::size_t bytes = 0;
  };

  std::vector<Block> blocks_;
};

}  // namespace assay::gpu
