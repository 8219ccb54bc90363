// Which headers an answer used that are not its own, the compiler's, or the C library's: what
// happens to be installed beside those differs between machines, and with it the grade.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace assay {

// The environment variable through which a compiler of GCC's kind is told where to write the rules
// below, headers of the system included ("Environment Variables Affecting GCC").
inline constexpr char kRulesVariable[] = "SUNPRO_DEPENDENCIES";

// `rules`: for make, as the compiler writes them, one for each file that it compiled. Returns "" or
// the first such header and the number of others, in words. `toolkit`: the folder of the CUDA
// Toolkit, or "".
std::string foreign_headers(std::string_view rules, const std::filesystem::path& toolkit);

}  // namespace assay
