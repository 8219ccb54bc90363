// One cell with everything that can be said about it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "assay/challenge.h"
#include "assay/results.h"
#include "grade/currency.h"
#include "submission/submission.h"

namespace assay::site {

// The least work of timed cases on the CPU, by challenge and case; the simulator's evidence has its
// own.
using LeastWorks = std::map<std::pair<std::string, std::string>, LeastWork>;

struct CellView {
  const BoardRow* row = nullptr;
  const ChallengeSpec* spec = nullptr;  // of the row's challenge, for the row's device
  std::optional<CellResult> evidence;   // all measurements
  std::string evidence_problem;         // why the evidence is absent
  const ModelInfo* about = nullptr;     // what is said of the model; null if nothing
  Yardstick yardstick;                  // of its column on the board
  std::vector<SourceFile> sources;      // of the measured answer
  std::string sources_problem;          // why there are none
  std::size_t source_bytes = 0;         // the most that is shown of them
  std::vector<const BoardRow*> others;  // of the same model and challenge, in order
  const LeastWorks* least = nullptr;
  bool brief = false;  // one of very many: see kMostDetailedCells
};

// One training of a model: how much it learned of each kind. 0: as good as a model that counts
// pairs; 1: the least possible loss. From metrics "closure_KIND" of a case that measures resources.
struct Learned {
  std::string case_name, kind;
  double closure = 0;
};
std::vector<Learned> learned(const CellResult&);
// The closure that earns full points.
std::optional<double> asked_closure(const ChallengeSpec&, const std::string& kind);

// An error relative to its bound, which is 1.
struct RelativeError {
  std::string case_name;
  CaseGroup group = CaseGroup::core;
  double ratio = 0;
};
std::vector<RelativeError> relative_errors(const CellResult&);

// What the pages of models and challenges show of a cell beyond its row.
struct CellFacts {
  bool with_evidence = false, with_sources = false;
  std::optional<double> worst_error, median_error;  // relative to the bound
  std::vector<Learned> learned;
  std::vector<std::string> failed;  // names of cases that failed through the answer's fault
  std::size_t cases = 0;            // cases that were run; 0 without evidence
};
CellFacts facts_of(const CellView&);

}  // namespace assay::site
