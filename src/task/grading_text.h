// How an answer is graded, in words. Everything comes from the spec, so no prompt can contradict
// it.
#pragma once

#include <string>

#include "assay/case.h"
#include "assay/challenge.h"
#include "submission/submission.h"

namespace assay::task {

// Markdown: the section "Grading". `spec` must be the one for the device on which the language is
// graded.
std::string grading_text(const ChallengeSpec& spec, const Challenge&, Language);

}  // namespace assay::task
