// The pages below analysis/: what the board says beyond its ranking. There is a page per challenge,
// per model and per pair that matters, one for the traps, and the index with the takeaways. They
// are functions of the board and the specs alone: the same board gives the same bytes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/results.h"
#include "compare/field.h"
#include "compare/published.h"
#include "judge/opinion.h"
#include "report/page.h"

namespace assay::report {

// Limits on a large board's pages: the leaders on each device get them.
inline constexpr std::size_t kModelPages = 50;

struct AnalysisOptions {
  compare::By by = compare::By::mean;
  std::string rankings = "../results/RANKINGS.md";        // as seen from the index
  std::map<std::string, compare::Published> published{};  // by name; one page each
  std::vector<judge::Opinion> opinions{};                 // one page for all, if there are any
};

// Path below the folder of pages -> text. Empty for an empty board without published grades. Every
// page begins with kGenerated.
std::map<std::string, std::string> analysis_pages(const Scoreboard&,
                                                  const std::vector<ChallengeSpec>&,
                                                  const AnalysisOptions& = {});

// A name as a file name. Plain characters are kept; a name that is not plain, or long, ends in a
// hash, so that no two names share a file and none leaves its folder.
std::string page_name(const std::string& name);

// A field's traps, sorted by how well they separate, with remarks on each; for a page and for the
// terminal.
void add_traps(Page&, const compare::Field&, int level);

}  // namespace assay::report
