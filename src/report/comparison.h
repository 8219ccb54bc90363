// Models side by side, for people and for scripts.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "assay/results.h"
#include "compare/field.h"
#include "compare/pairwise.h"
#include "report/page.h"

namespace assay::report {

struct ComparisonOptions {
  compare::By by = compare::By::mean;
  compare::Goal goal = compare::goal_from("correct");
  // Facts that the evidence of two rows adds; may be empty.
  std::function<std::vector<compare::Fact>(const BoardRow&, const BoardRow&, const ChallengeSpec&)>
      evidence;
  int level = 1;                  // of the first heading
  std::vector<std::size_t> k{1};  // of pass@k
  std::vector<double> p{1};       // of fast_p
};

// Appends a comparison of two or more models of a field to the page: scores with differences and
// winners, the record, figures over attempts, dimensions, what was decisive, and what only one of
// them solved.
void add_comparison(Page&, const compare::Field&, const std::vector<const compare::Player*>&,
                    const ComparisonOptions&);

// The same as JSON: an object with the device, the figure and, for each pair, all of the above. See
// docs/file-formats.md.
nlohmann::ordered_json comparison_json(const compare::Field&,
                                       const std::vector<const compare::Player*>&,
                                       const ComparisonOptions&);

}  // namespace assay::report
