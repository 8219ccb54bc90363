// What the program says, and what becomes of it when nobody reads it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace assay::cli {

// 128 + SIGPIPE, as any program ends whose reader went away.
inline constexpr int kNobodyReads = 141;

// On stderr. Files and programs of others may have a part in it: what would move a cursor is made
// visible. That nobody reads it, or that there is no room for it, changes nothing.
void tell(std::string_view text);

// To be called last: `status`, or why what was printed on stdout did not arrive. That is said on
// stderr, unless the reader closed the pipe.
int after_output(int status) noexcept;

// The same where printing failed with that errno.
int output_failed(int error) noexcept;

// "1 answer", "2 answers"
std::string counted(std::size_t n, const char* noun);

}  // namespace assay::cli
