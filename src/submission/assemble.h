// Source files that lie in no folder -> Submission.
#pragma once

#include <vector>

#include "submission/submission.h"

namespace assay {

// What of these files is the answer in that language, its tests apart: as if they lay in a folder.
// REQUIRES names that objection_to_name() does not object to, each once.
Submission submission_from(std::vector<SourceFile> files, Language);

}  // namespace assay
