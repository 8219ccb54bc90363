// Compares the cells of two boards: for a pull request, or after a change to assay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/results.h"
#include "measure/statistics.h"

namespace assay::compare {

struct CellChange {
  enum class Kind : std::uint8_t {
    worse,         // beyond noise
    gone,          // the newer board has no such cell
    ungraded,      // it no longer has a total
    better,        // beyond noise
    appeared,      // the older board had no such cell
    graded,        // it had no total before
    within_noise,  // the interval of the difference contains zero
    same,          // the same measurement
    incomparable,  // `remark` says why
  };
  Kind kind = Kind::same;
  CellKey key;
  const BoardRow *before = nullptr, *after = nullptr;  // null if there is none
  std::optional<Estimate> difference;                  // after - before, if both have a total
  std::string remark;  // why they are not compared; a changed verdict or sources
};

const char* to_string(CellChange::Kind);  // "within noise"

// The changes of all cells of both boards, sorted by the kinds above, then by key. A change counts
// as worse or better if its whole interval lies on one side of zero and it is at least `least`
// points. Scores that why_apart() in grade/currency.h keeps apart are not compared; scores against
// different versions of a spec are compared only with `across_specs`. The boards must outlive the
// result.
std::vector<CellChange> diff_boards(const Scoreboard& before, const Scoreboard& after,
                                    double least = 0, bool across_specs = false);

// Whether a check should fail for this change: worse, gone, ungraded.
bool is_regression(const CellChange&);

}  // namespace assay::compare
