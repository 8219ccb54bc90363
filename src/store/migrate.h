// Converts boards of schema 1, which held all evidence, to the current form.
#pragma once

#include <filesystem>
#include <string>

namespace assay::store {

// Writes the evidence of each cell of such a board to a file, then writes the new board. If killed
// or stopped in between, it starts over next time. A board of schema 2 whose cells lack their
// failed cases (BoardRow::failed) gets them from the evidence, if that exists. Returns what it did,
// in a sentence; "" if there was nothing to do.
std::string migrate(const std::filesystem::path& folder);

}  // namespace assay::store
