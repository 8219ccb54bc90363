// The kernel's account of a process's resident memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>

namespace assay::run {

// Bytes. A kernel counts in batches of pages for each core, so any of them may be off by some hundred
// KiB.
struct MemoryFigures {
  std::uint64_t anonymous = 0, files = 0, shared = 0;
  std::uint64_t peak = 0;  // of their sum, since it was reset

  std::uint64_t sum() const { return anonymous + files + shared; }
};

// Of a /proc/<pid>/status. Throws Error when a figure is missing: none is a zero.
MemoryFigures parse_memory_figures(std::string_view status);

MemoryFigures memory_figures(pid_t);
// Throws Error when the kernel does not reset it.
void reset_memory_peak(pid_t);

}  // namespace assay::run
