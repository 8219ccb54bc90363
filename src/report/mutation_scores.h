// How good the cases are at catching mistakes: the mutation scores, as Markdown.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "mutate/score.h"

namespace assay::report {

// The score as "98.6 %"; empty where no mutant counts.
std::string percent(const mutate::Tally&);

// One sentence on all challenges together; empty without a score. Scores of cases that have changed
// since are left out, and it says for how many challenges.
std::string mutation_sentence(const std::vector<mutate::ChallengeScore>&,
                              const std::vector<ChallengeSpec>&);

// A row a challenge, with what became of the mutants that were drawn; empty without a score.
std::string mutation_table(const std::vector<mutate::ChallengeScore>&,
                           const std::vector<ChallengeSpec>&);

}  // namespace assay::report
