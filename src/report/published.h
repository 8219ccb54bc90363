// Grades published by others, beside measured ones.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/results.h"
#include "compare/published.h"
#include "report/page.h"

namespace assay::report {

// Appends a page about them: the grades, their averages against the published ranking,
// contradictions, and measurements of the same models. Two model names are the same if their
// letters and digits are, ignoring case.
void add_published(Page&, const compare::Published&, const Scoreboard&,
                   const std::vector<ChallengeSpec>&);

}  // namespace assay::report
