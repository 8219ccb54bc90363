// The public cases of a challenge, in words: the same section in every prompt.
#pragma once

#include <string>

#include "assay/case.h"
#include "assay/challenge.h"
#include "spec/public_cases.h"
#include "submission/submission.h"

namespace assay::task {

// Markdown: the section "Public cases". `spec` is public_spec(), for the language's device.
std::string public_text(const ChallengeSpec& spec, const Challenge&, const PublicCases&, Language);

}  // namespace assay::task
