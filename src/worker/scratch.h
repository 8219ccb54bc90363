// The memory behind assay_ctx::alloc: a first-fit arena. It keeps its pages, so that timed calls
// get warm memory, and it counts live bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace assay::worker {

// Bytes on each side of a guarded block that belong to nobody.
inline constexpr std::size_t kRedZone = 128;

class Scratch {
 public:
  // A block whose red zone was overwritten: the bytes requested for it, and on which side.
  struct Overrun {
    std::size_t bytes = 0;
    bool beyond_end = false;
  };

  explicit Scratch(std::size_t capacity);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // NULL if full, or if align is not a power of two.
  void* allocate(std::size_t bytes, std::size_t align);
  void release(void*);  // ignores unknown pointers

  std::size_t live() const { return live_; }
  std::size_t peak() const { return peak_; }
  void reset_peak() { peak_ = live_; }
  // Whether new blocks get red zones, and no access beyond the last block is possible. Guarding
  // costs time and memory, so it is off when either is measured.
  void guard(bool on);
  // Whether the pages freed by a released block go back to the kernel, so that resident memory
  // equals live memory. It costs time, so it is off when time is measured.
  void give_back(bool on) { giving_back_ = on; }
  // The first overwritten red zone since the last call, whether found now or when its block was
  // released. Each is reported once.
  std::optional<Overrun> take_overrun();

  // Fills every free byte that was ever handed out with 0xff.
  void poison();

 private:
  struct Block {
    std::size_t data, end, requested;  // [data, end) is the submission's
    std::size_t zone;                  // bytes of red zone before it, and as many after it
    std::size_t begin_with_zone() const { return data - zone; }
    std::size_t end_with_zone() const { return end + zone; }
  };
  bool is_packed(std::size_t block) const;
  bool open_until(std::size_t end);
  void paint(const Block&);
  void inspect(const Block&);
  void give_pages_back(std::size_t begin, std::size_t end);

  std::mutex mutex_;
  std::byte* base_;
  std::size_t capacity_, high_water_ = 0, live_ = 0, peak_ = 0;
  std::size_t open_;  // accesses from here on fault
  bool guarding_ = false, giving_back_ = false;
  std::optional<Overrun> overrun_;
  std::vector<Block> blocks_;  // sorted by position
  std::size_t packed_ = 0;     // how many blocks at the front leave no room before them
};

}  // namespace assay::worker
