// What this process may have of the system.
#pragma once

#include <cstdint>

namespace assay {

// Fewer do not hold the files of several sandboxes at once.
inline constexpr std::uint64_t kLeastOpenFiles = 256;

// Raises the limit on open files as far as this process may; throws Error with the remedy when that is
// less than `least`.
void raise_open_files(std::uint64_t least = kLeastOpenFiles);

// Opens /dev/null where standard input, output or error is closed: else the next file that is opened
// would take its place, and what is printed would go there.
void open_standard_files();

}  // namespace assay
