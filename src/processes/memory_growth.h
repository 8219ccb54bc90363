// How far a worker's memory has grown since just before the submission was loaded. This is the
// arithmetic on the kernel's two accounts: resident pages, and a memory group. All in bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "processes/memory_figures.h"

namespace assay::processes {

// Pages of shared memory that are not growth, although the worker's account may include them.
struct SharedPages {
  std::uint64_t of_case = 0, of_callbacks = 0;
};

struct PageAccount {
  MemoryFigures before, now;
  // Exact to the page; absent if the kernel does not let us look. exactly_at_most is the most that
  // was seen since the peak was reset.
  std::optional<Resident> exactly_before, exactly_at_most;
  SharedPages shared;
  std::uint64_t library = 0;  // of the submission's file
};
std::uint64_t grown_by(const PageAccount&, int cores);

struct GroupAccount {
  std::uint64_t before = 0, files_before = 0;
  std::uint64_t peak = 0, files_now = 0;
  SharedPages shared;
};
std::uint64_t grown_by(const GroupAccount&, int cores);

// Growth that is neither the submission's scratch nor a file: relocations, bookkeeping of the
// linker and the allocator, stacks. `exact`: whether the figures are exact to the page.
// `cuda_library`: for a submission in CUDA, the size of its file.
std::uint64_t uncounted_growth(int threads, bool exact, std::optional<std::uint64_t> cuda_library);

// `value` - `of`, or 0 if that is negative.
constexpr std::uint64_t beyond(std::uint64_t value, std::uint64_t of) {
  return value > of ? value - of : 0;
}

}  // namespace assay::processes
