// One cell with all that can be said of it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "assay/challenge.h"
#include "assay/results.h"
#include "submission/submission.h"

namespace assay::site {

// The least work of timed cases on the CPU, by challenge and case; evidence of the simulator has
// its own.
using LeastWorks = std::map<std::pair<std::string, std::string>, LeastWork>;

struct CellView {
  const BoardRow* row = nullptr;
  const ChallengeSpec* spec = nullptr;  // of the row's challenge, as the row's device is asked
  std::optional<CellResult> evidence;   // all that was measured
  std::string evidence_problem;         // why that is absent
  const ModelInfo* about = nullptr;     // what is said of the model; null where nothing is
  std::string stale;                    // why it is, see grade/currency.h; "" when it is not
  std::vector<SourceFile> sources;      // of the answer that was measured
  std::string sources_problem;          // why there are none
  std::size_t source_bytes = 0;         // how much of them is shown at most
  std::vector<const BoardRow*> others;  // of the same model and challenge, in order
  const LeastWorks* least = nullptr;
  bool brief = false;  // one of very many: see kMostDetailedCells
};

// One training of a model: what it came to of each kind of thing to learn. 0 is a model that counts
// pairs, 1 the least possible loss. Metrics "closure_KIND" of a case that measures resources.
struct Learned {
  std::string case_name, kind;
  double closure = 0;
};
std::vector<Learned> learned(const CellResult&);
// What earns full points.
std::optional<double> asked_closure(const ChallengeSpec&, const std::string& kind);

// An error relative to what is allowed; 1 is the bound.
struct RelativeError {
  std::string case_name;
  CaseGroup group = CaseGroup::core;
  double ratio = 0;
};
std::vector<RelativeError> relative_errors(const CellResult&);

// What the pages of models and challenges say of a cell beyond its row.
struct CellFacts {
  bool with_evidence = false, with_sources = false;
  std::optional<double> worst_error, median_error;  // relative to the bound
  std::vector<Learned> learned;
  std::vector<std::string> failed;  // names of cases that failed by the answer's fault
  std::size_t cases = 0;            // that were run; 0 without evidence
};
CellFacts facts_of(const CellView&);

}  // namespace assay::site
