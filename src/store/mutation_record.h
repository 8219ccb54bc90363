// The latest mutation scores, stored next to the board: RESULTS/mutants.json.
#pragma once

#include <filesystem>
#include <vector>

#include "mutate/score.h"

namespace assay::store {

std::filesystem::path mutation_record_path(const std::filesystem::path& results);

// Sorted by challenge, then by answer; empty if there is no file. Throws Error naming the file if
// it holds anything else.
std::vector<mutate::ChallengeScore> read_mutation_record(const std::filesystem::path& results);

// Replaces the scores of the same challenge and answer, and keeps the others. Written atomically by
// rename.
void add_to_mutation_record(const std::filesystem::path& results,
                            const std::vector<mutate::ChallengeScore>&);

}  // namespace assay::store
