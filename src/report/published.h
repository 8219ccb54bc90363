// Grades that others published, beside measured ones.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/results.h"
#include "compare/published.h"
#include "report/page.h"

namespace assay::report {

// Appends a page about them: the grades, what they average to against the published ranking,
// contradictions, and what was measured of the same models. Names of models are the same when their
// letters and digits are, whatever their case.
void add_published(Page&, const compare::Published&, const Scoreboard&,
                   const std::vector<ChallengeSpec>&);

}  // namespace assay::report
