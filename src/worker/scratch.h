// The memory behind assay_ctx::alloc: a first-fit arena that keeps its pages, so that timed calls
// meet warm memory, and that counts what is live.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace assay::worker {

class Scratch {
 public:
  explicit Scratch(std::size_t capacity);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void* allocate(std::size_t bytes, std::size_t align);  // NULL when full
  void release(void*);                                   // ignores unknown pointers

  std::size_t live() const { return live_; }
  std::size_t peak() const { return peak_; }
  void reset_peak() { peak_ = live_; }
  // Fills every byte ever handed out and free now with 0xff.
  void poison();

 private:
  struct Block {
    std::size_t begin, end, requested;
  };
  std::mutex mutex_;
  std::byte* base_;
  std::size_t capacity_, high_water_ = 0, live_ = 0, peak_ = 0;
  std::vector<Block> blocks_;  // sorted by begin
};

}  // namespace assay::worker
