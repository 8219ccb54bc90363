// spec.json -> validated ChallengeSpec.
#pragma once

#include <filesystem>

#include "assay/case.h"

namespace assay {

const char* to_string(CaseGroup);
CaseGroup case_group(const std::string&);  // throws Error on an unknown name

// Reads `<directory>/spec.json`, validates it against challenges/spec.schema.json (compiled in) and
// against the rules a schema cannot state (unique names, references, sums). Throws Error with the
// file, the line or JSON pointer, and the cause.
ChallengeSpec load_spec(const std::filesystem::path& directory);

}  // namespace assay
