// Submissions -> graded cells -> files and screen: the part shared by run and rerun.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "assay/results.h"
#include "cells/cell.h"
#include "cli/harness.h"
#include "cli/pipeline.h"
#include "cli/progress.h"
#include "store/result_store.h"

namespace assay::cli {

// One of the places at which cells are measured.
struct RunnerAt {
  std::unique_ptr<cells::CellRunner> runner;
  std::optional<GpuMachine> gpu{};  // the GPU that it measures on, for its rows
};

// Checks, times, grades and stores every submission as session/session.h describes, at all places,
// showing each cell when it is finished. Works in board order, with C++ and CUDA submissions side
// by side. There is at least one place. Throws Stopped on a stop request; finished cells are stored
// by then. If a cell cannot be stored, the Error says where it was kept instead.
std::vector<BoardEntry> run_cells(const Harness&, const std::vector<RunnerAt>&,
                                  const std::vector<ChallengeSpec>&, const std::vector<Submission>&,
                                  std::size_t jobs, store::ResultStore&, Progress&);

}  // namespace assay::cli
