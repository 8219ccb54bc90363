// `assay selftest --mutants`: how many one-place mutants of right answers do the cases kill?
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/context.h"
#include "cli/harness.h"

namespace assay::cli {

struct MutationOptions {
  std::size_t count = 0;  // of each challenge
  std::string id;         // not empty: this one, instead
  std::string of = "textbook";
  bool json = false;
  bool record = false;  // the scores, in the folder of results
  std::string results;  // empty: the context's
};

// Runs them, prints survivors and the score, keeps the score where that is asked for, and returns
// the exit status: kCheckFailed where one survived that no list excuses, or a list names what is no
// mutant.
int score_mutants(const Context&, const MutationOptions&, const HarnessOptions&,
                  const std::vector<std::string>& challenges, std::uint64_t seed, std::size_t jobs);

}  // namespace assay::cli
