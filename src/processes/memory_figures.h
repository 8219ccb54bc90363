// The kernel's account of a process's resident memory.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace assay::processes {

// In bytes. Kernels count in batches of pages for each core: see counter_error().
struct MemoryFigures {
  std::uint64_t anonymous = 0, files = 0, shared = 0;
  std::uint64_t peak = 0;  // of their sum, since the last reset

  std::uint64_t sum() const { return anonymous + files + shared; }
};

// Parses a /proc/<pid>/status. Throws Error if a figure is missing: a missing figure is not zero.
MemoryFigures parse_memory_figures(std::string_view status);

MemoryFigures memory_figures(pid_t);

// Resident bytes. A page of a file becomes anonymous when it is written, so anonymous pages may grow
// while the sum stays what it was.
struct Resident {
  std::uint64_t sum = 0, anonymous = 0;

  void raise_to(const Resident&);  // each figure to the larger of the two
};

// Resident memory now, exact to the page; slow for large processes unless counters_are_exact().
// Absent if the kernel does not let us look.
std::optional<Resident> exact_resident(pid_t);

// Resident memory now by the kernel's counters. Absent if there is no such process.
std::optional<Resident> counted_resident(pid_t);

// Whether those counters are exact at every moment, as on Linux 6.18; tested in a child. On kernels
// with per-core counters they are off by up to counter_error(). Throws if no child can be made; the
// next call then tries again.
bool counters_are_exact();

// By how much a figure (counter_error) or a memory group's charge (charge_error) may be off for a
// process that may run on `cores` cores.
std::uint64_t counter_error(int cores);
std::uint64_t charge_error(int cores);

// Throws Error if the kernel does not reset it.
void reset_memory_peak(pid_t);

}  // namespace assay::processes
