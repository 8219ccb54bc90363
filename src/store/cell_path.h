// Paths of cell evidence.
#pragma once

#include <string>

#include "assay/results.h"

namespace assay::store {

// "<model>/<challenge>/[<attempt>.]<device>.json", relative. Models and attempts are named after
// users' folders, and boards come from elsewhere. Whatever the names, the path stays below its
// folder, no part is too long for a file system, and no two cells share a path. Letters, digits,
// '_', '-' and inner dots are kept, other bytes become %XX, and long names end in a hash.
std::string cell_path(const CellKey&);

// A name as one component of such a path. REQUIRES that it is not empty; throws Error otherwise.
std::string path_part(const std::string& name);

// Below the results folder: the evidence of a cell on the board, and that of a cell that a run
// measured but that is not on the board.
std::string evidence_path(const CellKey&);
std::string evidence_path(const CellKey&, const std::string& run_id);

}  // namespace assay::store
