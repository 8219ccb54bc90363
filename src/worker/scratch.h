// The memory behind assay_ctx::alloc: a first-fit arena that keeps its pages, so that timed calls
// meet warm memory, and that counts what is live.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace assay::worker {

// Bytes on both sides of a guarded block, which belong to nobody.
inline constexpr std::size_t kRedZone = 128;

class Scratch {
 public:
  // A block beside which somebody wrote: what was asked for, and on which side of it.
  struct Overrun {
    std::size_t bytes = 0;
    bool beyond_end = false;
  };

  explicit Scratch(std::size_t capacity);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // NULL when full, or when align is no power of two.
  void* allocate(std::size_t bytes, std::size_t align);
  void release(void*);  // ignores unknown pointers

  std::size_t live() const { return live_; }
  std::size_t peak() const { return peak_; }
  void reset_peak() { peak_ = live_; }
  // Whether blocks handed out from now on lie between red zones. These cost time and memory, so
  // nothing is guarded where either is measured.
  void guard(bool on) { guarding_ = on; }
  // Whether pages that a released block leaves free are given back to the kernel, so that what is
  // resident is what is live. It costs time, so not where that is measured.
  void give_back(bool on) { giving_back_ = on; }
  // The first write beside a guarded block since the last call, found when the block is released or
  // now. Each is told once.
  std::optional<Overrun> take_overrun();

  // Fills every byte ever handed out and free now with 0xff.
  void poison();

 private:
  struct Block {
    std::size_t data, end, requested;  // [data, end) is the submission's
    std::size_t zone;                  // bytes before and after it that are its red zones
    std::size_t begin_with_zone() const { return data - zone; }
    std::size_t end_with_zone() const { return end + zone; }
  };
  bool is_packed(std::size_t block) const;
  void paint(const Block&);
  void inspect(const Block&);
  void give_pages_back(std::size_t begin, std::size_t end);

  std::mutex mutex_;
  std::byte* base_;
  std::size_t capacity_, high_water_ = 0, live_ = 0, peak_ = 0;
  bool guarding_ = false, giving_back_ = false;
  std::optional<Overrun> overrun_;
  std::vector<Block> blocks_;  // sorted by place
  std::size_t packed_ = 0;     // how many at the front leave no room before them
};

}  // namespace assay::worker
