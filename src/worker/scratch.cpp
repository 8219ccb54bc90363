#include "worker/scratch.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace assay::worker {

Scratch::Scratch(std::size_t capacity)
    : base_(static_cast<std::byte*>(::mmap(nullptr, capacity, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))),
      capacity_(base_ == MAP_FAILED ? 0 : capacity) {
  blocks_.reserve(1024);
}

Scratch::~Scratch() {
  if (capacity_ > 0) ::munmap(base_, capacity_);
}

void* Scratch::allocate(std::size_t bytes, std::size_t align) {
  const std::lock_guard lock(mutex_);
  align = std::max<std::size_t>(align, 64);
  if (bytes > capacity_ || align > capacity_) return nullptr;
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  std::size_t begin = 0;
  auto next = blocks_.begin();
  for (; next != blocks_.end(); ++next) {
    if (begin + size <= next->begin) break;
    begin = (next->end + align - 1) & ~(align - 1);
  }
  if (begin + size > capacity_) return nullptr;
  blocks_.insert(next, {begin, begin + size, bytes});
  high_water_ = std::max(high_water_, begin + size);
  live_ += bytes;
  peak_ = std::max(peak_, live_);
  return base_ + begin;
}

void Scratch::release(void* p) {
  const std::lock_guard lock(mutex_);
  const auto at = static_cast<std::size_t>(static_cast<std::byte*>(p) - base_);
  const auto block =
      std::find_if(blocks_.begin(), blocks_.end(), [&](const Block& b) { return b.begin == at; });
  if (p == nullptr || block == blocks_.end()) return;
  live_ -= block->requested;
  blocks_.erase(block);
}

void Scratch::poison() {
  const std::lock_guard lock(mutex_);
  std::size_t begin = 0;
  for (const Block& block : blocks_) {
    std::memset(base_ + begin, 0xff, block.begin - begin);
    begin = block.end;
  }
  if (begin < high_water_) std::memset(base_ + begin, 0xff, high_water_ - begin);
}

}  // namespace assay::worker
