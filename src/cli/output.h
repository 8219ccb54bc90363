// The program's output, and handling of output that nobody reads.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay::cli {

// 128 + SIGPIPE, the usual status if the reader is gone.
inline constexpr int kNobodyReads = 141;

// Writes to stderr. The text may contain parts from untrusted files and programs, so terminal
// control characters are made visible. Write errors are ignored.
void tell(std::string_view text);

// Call this last: flushes stdout and returns `status`, or a failure status if the output did not
// arrive. The failure is reported on stderr, unless the reader closed the pipe.
int after_output(int status) noexcept;

// The same if printing failed with that errno.
int output_failed(int error) noexcept;

// "1 answer", "2 answers"
std::string counted(std::size_t n, const char* noun);

}  // namespace assay::cli
