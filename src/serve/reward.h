// A grade as those need it who train models: its parts as numbers, and one number of them.
#pragma once

#include <nlohmann/json.hpp>

namespace assay::serve {

// Of a document that challenges/grade.schema.json describes. Null is what was not measured.
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
// No wrong answer has more of `shaped` than a right one, however fast it is: below 0.7, and 0.7 at
// least.
nlohmann::ordered_json reward_of(const nlohmann::ordered_json& grade);

}  // namespace assay::serve
