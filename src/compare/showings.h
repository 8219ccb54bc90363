// Where a model stands above the others and where below them, challenge by challenge.
#pragma once

#include <cstddef>
#include <vector>

#include "compare/field.h"

namespace assay::compare {

struct Showing {
  std::size_t challenge = 0;  // its index in the field
  double score = 0;           // by the figure asked for
  double others = 0;          // the median of all others with a total there
  std::size_t place = 1;      // 1 + the models with a higher score
  std::size_t models = 1;     // with a total there, this one included

  double lead() const { return score - others; }
};

// The scores of a field, kept so that each model's place among them is found at once.
class Showings {
 public:
  Showings() = default;
  Showings(const Field&, By);

  // What a median says of fewer others is little.
  static constexpr std::size_t kLeastOthers = 2;

  // The largest lead first, then as the field has them: whole challenges at which the model and
  // kLeastOthers others have a full total of today. The field is the one it was made of.
  std::vector<Showing> of(const Field&, const Player&) const;

 private:
  By by_ = By::mean;
  std::vector<std::vector<double>> scores_;  // of each challenge, sorted
};

}  // namespace assay::compare
