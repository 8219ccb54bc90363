// Tracks which parts of a GPU address range are allocated. First fit; blocks begin on multiples of
// kAlignment and are separated by gaps.
#pragma once

#include <cstdint>
#include <map>

namespace assay::gpu {

struct Block {
  std::uint64_t address = 0, bytes = 0;
};

class BlockMap {
 public:
  static constexpr std::uint64_t kAlignment = 512;  // at least that of cudaMalloc
  static constexpr std::uint64_t kGap = 512;        // bytes after every block

  // At most `capacity` bytes of the range are allocated at a time.
  BlockMap(std::uint64_t begin, std::uint64_t range_bytes, std::uint64_t capacity)
      : begin_(begin), end_(begin + range_bytes), capacity_(capacity) {}

  std::uint64_t allocate(std::uint64_t bytes);  // 0: no room
  bool free(std::uint64_t address);             // false: no block begins there
  // The block around an address, {0, 0} if none.
  Block around(std::uint64_t address) const;
  // Whether the range lies within one block.
  bool contains(std::uint64_t address, std::uint64_t bytes) const;

  std::uint64_t capacity() const { return capacity_; }
  std::uint64_t live_bytes() const { return live_; }
  std::uint64_t high_water() const { return high_water_; }  // of live_bytes()
  void reset_high_water() { high_water_ = live_; }

 private:
  std::uint64_t begin_, end_, capacity_, live_ = 0, high_water_ = 0;
  std::map<std::uint64_t, std::uint64_t> blocks_;  // address -> bytes
};

}  // namespace assay::gpu
