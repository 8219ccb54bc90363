// `assay selftest --mutants`: how many one-place mutants of correct answers the cases kill.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/context.h"
#include "cli/harness.h"

namespace assay::cli {

struct MutationOptions {
  std::size_t count = 0;  // per challenge
  std::string id;         // not empty: only this mutant
  std::string of = "textbook";
  bool json = false;
  bool record = false;  // write the scores to the results folder
  std::string results;  // empty: the context's
};

// Runs the mutants, prints survivors and the score, records the score if requested, and returns the
// exit status: kCheckFailed if a mutant survived that no list excuses, or if a list entry matches
// no mutant.
int score_mutants(const Context&, const MutationOptions&, const HarnessOptions&,
                  const std::vector<std::string>& challenges, std::uint64_t seed, std::size_t jobs);

}  // namespace assay::cli
