// The kernel's account of a process's resident memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace assay::processes {

// Bytes. Kernels count in batches of pages for each core: see counter_error().
struct MemoryFigures {
  std::uint64_t anonymous = 0, files = 0, shared = 0;
  std::uint64_t peak = 0;  // of their sum, since it was reset

  std::uint64_t sum() const { return anonymous + files + shared; }
};

// Of a /proc/<pid>/status. Throws Error when a figure is missing: none is a zero.
MemoryFigures parse_memory_figures(std::string_view status);

MemoryFigures memory_figures(pid_t);

// What is resident now, to the page: slow for much memory, but where counters_are_exact(). Nothing
// where the kernel does not let us look.
std::optional<std::uint64_t> exact_resident(pid_t);

// What is resident now by the kernel's counters. Nothing where there is no such process.
std::optional<std::uint64_t> counted_resident(pid_t);

// Whether those are exact at every moment, as Linux 6.18 has them, tried on a child. On kernels where
// each core counts for itself they are off by up to counter_error(). Throws where no child can be
// made, and tries again when next asked.
bool counters_are_exact();

// By how much a figure, or what a memory group is charged, may be off for a process that may run on
// so many cores.
std::uint64_t counter_error(int cores);
std::uint64_t charge_error(int cores);

// Throws Error when the kernel does not reset it.
void reset_memory_peak(pid_t);

}  // namespace assay::processes
