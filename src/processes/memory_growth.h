// By how much a worker's memory has grown over what it was before the submission was loaded: the
// arithmetic of the kernel's two accounts, of resident pages and of a memory group. All in bytes.
#pragma once

#include <cstdint>
#include <optional>

#include "processes/memory_figures.h"

namespace assay::processes {

// Of the shared memory, pages that are no growth although the worker's account may hold them.
struct SharedPages {
  std::uint64_t of_case = 0, of_callbacks = 0;
};

struct PageAccount {
  MemoryFigures before, now;
  // Page by page; absent where the kernel does not let us look. The second is the most that was
  // seen since the peak was reset.
  std::optional<std::uint64_t> exactly_before, exactly_at_most;
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

// Growth that is no scratch of the submission's and no file: relocations, the linker's bookkeeping,
// an allocator's, stacks. `exact`: whether the figures are told to the page. `cuda_library`: of a
// submission in CUDA, the bytes of its file.
std::uint64_t uncounted_growth(int threads, bool exact, std::optional<std::uint64_t> cuda_library);

// `value` - `of`, and no less than 0.
constexpr std::uint64_t beyond(std::uint64_t value, std::uint64_t of) {
  return value > of ? value - of : 0;
}

}  // namespace assay::processes
