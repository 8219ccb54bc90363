// Older forms of evidence, which is kept for years.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace assay {

// Rewrites a cell with its score, in any form that the schema permits, in the current form:
//   - a note was only its text;
//   - the verdict on a mutant was a case, OK if the tests judged the mutant rightly;
//   - a case that needed a GPU was skipped, and only its detail said why.
// `place` is the entry's position in its document.
void bring_to_form_of_today(nlohmann::json& entry, const std::string& place);

}  // namespace assay
