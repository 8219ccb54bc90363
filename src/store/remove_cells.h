// Removes results permanently.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "assay/results.h"

namespace assay::store {

// Takes the chosen cells off the board, removes their evidence, and returns them. Records of runs
// stay, as history.
std::vector<CellKey> remove_cells(const std::filesystem::path& folder,
                                  const std::function<bool(const CellKey&)>& chosen);

}  // namespace assay::store
