// Where a model is above the others and where below, challenge by challenge.
#pragma once

#include <cstddef>
#include <vector>

#include "compare/field.h"

namespace assay::compare {

struct Showing {
  std::size_t challenge = 0;  // its index in the field
  double score = 0;           // the figure given by `By`
  double others = 0;          // the median of all other models with a total there
  std::size_t place = 1;      // 1 + the models with a higher score
  std::size_t models = 1;     // with a total there, this one included

  double lead() const { return score - others; }
};

// The sorted scores of a field, so that each model's place is found quickly.
class Showings {
 public:
  Showings() = default;
  Showings(const Field&, By);

  // A median of fewer other models means little.
  static constexpr std::size_t kLeastOthers = 2;

  // The model's showings, largest lead first, then in field order. Covers challenges that are not
  // partial, at which the model and at least kLeastOthers others have a full, current total. The
  // field must be the one passed to the constructor.
  std::vector<Showing> of(const Field&, const Player&) const;

 private:
  By by_ = By::mean;
  std::vector<std::vector<double>> scores_;  // of each challenge, sorted
};

}  // namespace assay::compare
