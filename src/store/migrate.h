// Boards of schema 1, which held all evidence, in the form of today.
#pragma once

#include <filesystem>
#include <string>

namespace assay::store {

// Writes the evidence of each cell of such a board to a file, then the board anew: killed or
// stopped in between, it begins again. A board of schema 2 whose cells lack the cases that failed
// (BoardRow::failed) gets them from the evidence, where that is there. Returns what it did, in a
// sentence; "" when there was nothing to do.
std::string migrate(const std::filesystem::path& folder);

}  // namespace assay::store
