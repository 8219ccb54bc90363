// What became of the cells of one board in another: for a pull request, or after a change of
// assay's.
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
    ungraded,      // it has no total any more
    better,        // beyond noise
    appeared,      // the older board had no such cell
    graded,        // it had no total before
    within_noise,  // the interval of the difference contains zero
    same,          // the very same measurement
    incomparable,  // says why
  };
  Kind kind = Kind::same;
  CellKey key;
  const BoardRow *before = nullptr, *after = nullptr;  // null where there is none
  std::optional<Estimate> difference;                  // after - before, where both have a total
  std::string remark;  // why they cannot be compared; a change of the verdict or of the sources
};

const char* to_string(CellChange::Kind);  // "within noise"

// Of all cells of both boards, in the order of kinds above, then of keys. A change counts as worse
// or better when its whole interval lies on one side of zero and it is `least` points or more.
// Scores that do not compare, see why_apart() in grade/currency.h, are not compared: those against
// different versions of a spec only with `across_specs`. The boards
// must outlive the result.
std::vector<CellChange> diff_boards(const Scoreboard& before, const Scoreboard& after,
                                    double least = 0, bool across_specs = false);

// Whether a change is one that a check should fail for: worse, gone, ungraded.
bool is_regression(const CellChange&);

}  // namespace assay::compare
