// The pages below analysis/: what the board says beyond its ranking, one page per challenge, per
// model and per pair that matters, the traps, and the index with the takeaways. Functions of the
// board and the specs alone, byte for byte the same for the same board.
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

// How much of a large board has pages: those that lead each device.
inline constexpr std::size_t kModelPages = 50;

struct AnalysisOptions {
  compare::By by = compare::By::mean;
  std::string rankings = "../results/RANKINGS.md";        // as seen from the index
  std::map<std::string, compare::Published> published{};  // by name; a page each
  std::vector<judge::Opinion> opinions{};                 // a page of all, where there are any
};

// Path below the folder of pages -> text. Empty for an empty board without published grades. Every
// page begins with kGenerated.
std::map<std::string, std::string> analysis_pages(const Scoreboard&,
                                                  const std::vector<ChallengeSpec>&,
                                                  const AnalysisOptions& = {});

// A name as a file's: plain characters stand for themselves, and what is not plain, or long, ends
// in a hash, so that no two names share a file and none leaves its folder.
std::string page_name(const std::string& name);

// The traps of a field by how well they separate, with what is to be said of them; for a page and
// for the terminal.
void add_traps(Page&, const compare::Field&, int level);

}  // namespace assay::report
