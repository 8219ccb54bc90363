// Limits the total memory of workers that run side by side, so that they cannot drive the machine,
// and the harness with it, out of memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::processes {

// A part of the machine's memory, held for the object's lifetime.
class MemoryShare {
 public:
  // Waits until other threads release enough memory. A thread that already holds shares does not
  // wait, since it could wait for itself: it throws Error if its own shares leave too little. Its
  // first three shares are always granted, because a timed case needs naive, par and one answer.
  explicit MemoryShare(std::uint64_t bytes);
  ~MemoryShare();
  MemoryShare(const MemoryShare&) = delete;
  MemoryShare& operator=(const MemoryShare&) = delete;

 private:
  std::uint64_t bytes_;
};

// Bytes for all workers together: most of what was free at the start, in the machine and within the
// limits of our memory groups.
std::uint64_t memory_budget();

}  // namespace assay::processes
