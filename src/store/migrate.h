// Boards of schema 1, which held all evidence, in the form of today.
#pragma once

#include <filesystem>
#include <string>

namespace assay::store {

// Writes the evidence of each cell of such a board to a file, then the board anew: killed or stopped
// in between, it begins again. Returns what it did, in a sentence; "" when the board is not of
// schema 1.
std::string migrate(const std::filesystem::path& folder);

}  // namespace assay::store
