// A challenge's interface as one header that needs no other file.
#pragma once

#include <filesystem>
#include <string>

namespace assay::task {

// The text of `header`, with every header that it includes in quotes in its place, once; includes
// in angle brackets stay. Files are looked for below `include` (those of "assay/...") and beside
// the header. Throws Error when one is missing.
std::string flattened(const std::filesystem::path& header, const std::filesystem::path& include);

}  // namespace assay::task
