// How an answer is graded, in words: all of it from the spec, so that no prompt can say otherwise.
#pragma once

#include <string>

#include "assay/case.h"
#include "assay/challenge.h"
#include "submission/submission.h"

namespace assay::task {

// Markdown: the section "Grading". `spec` is that of the device on which the language is graded.
std::string grading_text(const ChallengeSpec& spec, const Challenge&, Language);

}  // namespace assay::task
