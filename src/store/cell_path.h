// Where the evidence of a cell lies.
#pragma once

#include <string>

#include "assay/results.h"

namespace assay::store {

// "<model>/<challenge>/[<attempt>.]<device>.json", relative. Models and attempts are named by
// folders of users, and boards come from elsewhere: whatever the names are, the path stays below
// its folder, no part of it is too long for a file system, and no two cells share one. Letters,
// digits, '_', '-' and inner dots stand for themselves, other bytes are %XX; what is long ends in a
// hash.
std::string cell_path(const CellKey&);

// A name as one part of such a path. REQUIRES that it is not empty; throws Error otherwise.
std::string path_part(const std::string& name);

// Below the results folder: of a cell of the board, and of one that a run measured and that is not
// on the board.
std::string evidence_path(const CellKey&);
std::string evidence_path(const CellKey&, const std::string& run_id);

}  // namespace assay::store
