// This process's limits and requirements on the system.
#pragma once

#include <cstdint>

namespace assay {

// With fewer, several sandboxes at once run out of files.
inline constexpr std::uint64_t kLeastOpenFiles = 256;

// Raises the limit on open files as far as this process may. Throws Error with the remedy if that
// is less than `least`.
void raise_open_files(std::uint64_t least = kLeastOpenFiles);

// Lifts the limit on this process's memory. Throws Error with the remedy if that is not permitted.
// Started programs get limits of their own, and a submission must not be blamed for a limit that
// the user inherited.
void lift_memory_limit();

// Keeps little freed memory: large blocks go back to the system at once, and threads share as many
// heaps as there are cores. For each sandbox that is started, the kernel copies the page tables of
// what this process holds.
void give_back_freed_memory();

// Throws Error with the remedy if /proc is not mounted. It is needed to find the program and a
// submission's memory use.
void require_proc();

// Opens /dev/null for closed standard input, output or error. Otherwise the next opened file would
// take its place and receive what is printed.
void open_standard_files();

}  // namespace assay
