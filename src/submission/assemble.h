// Makes a Submission from source files that are not in a folder.
#pragma once

#include <vector>

#include "submission/submission.h"

namespace assay {

// The answer in that language from these files, with its tests kept separate, as if they were in a
// folder. REQUIRES names that objection_to_name() accepts, each once.
Submission submission_from(std::vector<SourceFile> files, Language);

}  // namespace assay
