// Older forms of evidence, which is kept for years.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace assay {

// Rewrites a cell with its score, as the schema permits them, in the form of today:
//   - a note was its text alone;
//   - the verdict on a mutant was a case, OK where the tests judged the mutant rightly;
//   - a case that needed a GPU was skipped, and only its detail said why.
// `place` is where the entry stands in its document.
void bring_to_form_of_today(nlohmann::json& entry, const std::string& place);

}  // namespace assay
