// What this process may have of the system.
#pragma once

#include <cstdint>

namespace assay {

// Fewer do not hold the files of several sandboxes at once.
inline constexpr std::uint64_t kLeastOpenFiles = 256;

// Raises the limit on open files as far as this process may; throws Error with the remedy when that
// is less than `least`.
void raise_open_files(std::uint64_t least = kLeastOpenFiles);

// Lifts the limit on this process's memory; throws Error with the remedy where that may not be.
// What it starts has limits of its own, and a submission must not be blamed for one that others
// set.
void lift_memory_limit();

// Keeps little of what is freed: large blocks go back to the system at once, and threads share as
// many heaps as there are cores. The kernel copies the tables of what this process holds for each
// sandbox that it starts.
void give_back_freed_memory();

// Throws Error with the remedy where /proc is not mounted: it tells where the program lies and what
// memory a submission takes.
void require_proc();

// Opens /dev/null where standard input, output or error is closed: else the next file that is
// opened would take its place, and what is printed would go there.
void open_standard_files();

}  // namespace assay
