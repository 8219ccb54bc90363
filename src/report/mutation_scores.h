// How well the cases catch mistakes: the mutation scores, as Markdown.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "mutate/score.h"

namespace assay::report {

// The score as "98.6 %"; empty if no mutant counts.
std::string percent(const mutate::Tally&);

// One sentence on all challenges together; empty without a score. Scores of cases that have changed
// since are left out; the sentence says for how many challenges. Where cases were only added, a
// score is the least that it can be.
std::string mutation_sentence(const std::vector<mutate::ChallengeScore>&,
                              const std::vector<ChallengeSpec>&);

// One row per challenge, with the fate of the mutants that were drawn; empty without a score.
std::string mutation_table(const std::vector<mutate::ChallengeScore>&,
                           const std::vector<ChallengeSpec>&);

}  // namespace assay::report
