// A grade in the form that model training needs: its parts as numbers, and one number made of them.
#pragma once

#include <nlohmann/json.hpp>

namespace assay::serve {

// From a document that challenges/grade.schema.json describes. Null: not measured.
//
//   compiled              0 or 1
//   correctness           share of core, edge and trap cases that passed, by number: 0 to 1
//   right                 whether all of these were run and passed
//   findings              how many cases the simulator objects to
//   dimensions            points over what they could be, each 0 to 1
//   log_speed_over_naive  natural logarithm
//   log_speed_over_par
//   shaped                0.1 compiled + 0.6 correctness + (right ? 0.3 performance : 0)
//
// No wrong answer has as much of `shaped` as a right one, however fast it is: wrong answers stay
// below 0.7, right ones reach at least 0.7.
nlohmann::ordered_json reward_of(const nlohmann::ordered_json& grade);

}  // namespace assay::serve
