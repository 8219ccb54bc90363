// Submissions -> graded cells -> files: the part that run and rerun share.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "assay/results.h"
#include "cli/harness.h"
#include "cli/progress.h"
#include "run/cell.h"
#include "store/result_store.h"

namespace assay::cli {

store::RunStart new_run(const Harness&, std::uint64_t seed, nlohmann::json options);

// "2026-11-21T03-51-20Z-5f3a9c1e": sorts by time.
std::string make_run_id(std::uint64_t seed);

// Checks, times, grades and stores every submission. First those on the simulated device, which
// nothing disturbs, `jobs` at a time, those that took longest before first. Then the others in
// batches, challenge by challenge: untimed work on `jobs` threads, then the timed cases of all answers
// to a challenge in common rounds, with the machine to themselves.
std::vector<BoardEntry> run_cells(const Harness&, run::CellRunner&,
                                  const std::vector<ChallengeSpec>&, const std::vector<Submission>&,
                                  std::size_t jobs, store::ResultStore&, Progress&);

const ChallengeSpec& spec_named(const std::vector<ChallengeSpec>&, const std::string& name);

// "model/challenge", with "/2" for attempt 2 and " (sim)" for another device than the CPU.
std::string cell_name(const CellKey&);

// Says which cells of the run are not on the board, why, and where they are.
void print_set_aside(const store::ResultStore&);

}  // namespace assay::cli
