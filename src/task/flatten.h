// Turns a challenge's interface into one header that needs no other file.
#pragma once

#include <filesystem>
#include <string>

namespace assay::task {

// The text of `header` with every header that it includes in quotes inserted once; includes in
// angle brackets stay. Files are looked up below `include` (those of "assay/...") and next to the
// header. Throws Error if one is missing.
std::string flattened(const std::filesystem::path& header, const std::filesystem::path& include);

}  // namespace assay::task
