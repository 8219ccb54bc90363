#include "gpu/block_map.h"

#include <algorithm>
#include <iterator>

namespace assay::gpu {

std::uint64_t BlockMap::allocate(std::uint64_t bytes) {
  if (bytes == 0 || bytes > capacity_ - live_) return 0;
  const auto after = [](std::uint64_t address, std::uint64_t size) {
    return (address + size + kGap + kAlignment - 1) / kAlignment * kAlignment;
  };
  std::uint64_t at = begin_;
  for (const auto& [address, size] : blocks_) {
    if (address >= at && address - at >= bytes + kGap) break;
    at = after(address, size);
  }
  if (at > end_ || end_ - at < bytes) return 0;
  blocks_[at] = bytes;
  live_ += bytes;
  high_water_ = std::max(high_water_, live_);
  return at;
}

bool BlockMap::free(std::uint64_t address) {
  const auto block = blocks_.find(address);
  if (block == blocks_.end()) return false;
  live_ -= block->second;
  blocks_.erase(block);
  return true;
}

Block BlockMap::around(std::uint64_t address) const {
  const auto next = blocks_.upper_bound(address);
  if (next == blocks_.begin()) return {};
  const auto& [begin, bytes] = *std::prev(next);
  return address - begin < bytes ? Block{begin, bytes} : Block{};
}

bool BlockMap::contains(std::uint64_t address, std::uint64_t bytes) const {
  const Block block = around(address);
  return block.bytes > 0 && bytes <= block.bytes - (address - block.address);
}

}  // namespace assay::gpu
