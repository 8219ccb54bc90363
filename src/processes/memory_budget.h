// What workers that live side by side may take together, so that none of them can drive the
// machine, and the harness with it, out of memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace assay::processes {

// A part of the machine's memory, held for as long as the object lives.
class MemoryShare {
 public:
  // Waits while other threads hold what is missing. A thread that holds shares already does not
  // wait, since it might wait for itself: throws Error when its own shares leave too little. The
  // first three are granted in any case: a case that is timed needs naive, par and one answer.
  explicit MemoryShare(std::uint64_t bytes);
  ~MemoryShare();
  MemoryShare(const MemoryShare&) = delete;
  MemoryShare& operator=(const MemoryShare&) = delete;

 private:
  std::uint64_t bytes_;
};

// Bytes that there are for all: most of what was free at the start, in this machine and in the
// groups that we belong to.
std::uint64_t memory_budget();

}  // namespace assay::processes
