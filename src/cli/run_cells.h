// Submissions -> graded cells -> files and the screen: the part that run and rerun share.
#pragma once

#include <cstddef>
#include <vector>

#include "assay/results.h"
#include "cells/cell.h"
#include "cli/harness.h"
#include "cli/pipeline.h"
#include "cli/progress.h"
#include "store/result_store.h"

namespace assay::cli {

// Checks, times, grades and stores every submission as session/session.h says, showing each cell
// when it is finished. In the order of the board, C++ and CUDA answers beside each other. Throws
// Stopped when the end was asked for; what was finished is stored then. Where a cell cannot be
// stored, the Error says where it lies instead.
std::vector<BoardEntry> run_cells(const Harness&, cells::CellRunner&,
                                  const std::vector<ChallengeSpec>&, const std::vector<Submission>&,
                                  std::size_t jobs, store::ResultStore&, Progress&);

}  // namespace assay::cli
