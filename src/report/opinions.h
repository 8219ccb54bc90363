// Opinions of language models beside measured scores: in words for one answer, and as a page on how
// far they agree with measurement. What a judge wrote is untrusted and made safe.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/results.h"
#include "judge/opinion.h"
#include "report/page.h"

namespace assay::report {

// The section "opinions" of an answer, "" if there are none: a line for each judge with its marks,
// and its reasons. An opinion on sources other than the row's is mentioned but not shown.
std::string opinions_text(const std::vector<judge::Opinion>&, const BoardRow&);

// Appends the page: for each judge the rank correlations, the contradictions by rule, and what was
// left out.
void add_judges(Page&, const Scoreboard&, const std::vector<ChallengeSpec>&,
                const std::vector<judge::Opinion>&);

}  // namespace assay::report
