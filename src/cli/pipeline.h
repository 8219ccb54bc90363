// The record of a run, and look-ups by name.
#pragma once

#include <string>
#include <vector>

#include "assay/challenge.h"
#include "assay/results.h"
#include "cli/harness.h"
#include "store/result_store.h"

namespace assay::cli {

store::RunStart new_run(const Harness&, std::uint64_t seed, nlohmann::json options);

// "2026-11-21T03-51-20Z-5f3a9c1e": sorts by time.
std::string make_run_id(std::uint64_t seed);

// The compiled-in part of a challenge whose spec was loaded.
const Challenge& challenge_of(const ChallengeSpec&);

// Prints which cells of the run are not on the board, why, and where they are.
void print_set_aside(const store::ResultStore&);

}  // namespace assay::cli
