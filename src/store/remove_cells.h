// Results taken away for good.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "assay/results.h"

namespace assay::store {

// Takes the chosen cells off the board and removes their evidence; returns them. Records of runs
// stay: they tell what happened.
std::vector<CellKey> remove_cells(const std::filesystem::path& folder,
                                  const std::function<bool(const CellKey&)>& chosen);

}  // namespace assay::store
