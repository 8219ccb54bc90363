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

// `rules`: for make, as g++ writes them, one for each file that it compiled; clang writes none, so
// nothing is refused then. `own`: the folder of the build, as the host sees it. `toolkit`: the folder
// of the CUDA Toolkit, or "". Returns "" or the first such header and the number of others, in
// words. Single headers directly in /usr/include pass: they are told apart by no name.
std::string foreign_headers(std::string_view rules, const std::filesystem::path& own,
                            const std::filesystem::path& toolkit);

}  // namespace assay
