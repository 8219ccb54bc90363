// Submissions -> graded cells -> files and screen: the part shared by run and rerun.
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

// Checks, times, grades and stores every submission as session/session.h describes, showing each
// cell when it is finished. Works in board order, with C++ and CUDA submissions side by side.
// Throws Stopped on a stop request; finished cells are stored by then. If a cell cannot be stored,
// the Error says where it was kept instead.
std::vector<BoardEntry> run_cells(const Harness&, cells::CellRunner&,
                                  const std::vector<ChallengeSpec>&, const std::vector<Submission>&,
                                  std::size_t jobs, store::ResultStore&, Progress&);

}  // namespace assay::cli
