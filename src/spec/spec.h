// spec.json -> validated ChallengeSpec.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "assay/case.h"
#include "assay/device.h"

namespace assay {

const char* to_string(CaseGroup);
CaseGroup case_group(const std::string&);  // throws Error on an unknown name

// Reads `<directory>/spec.json`, validates it against challenges/spec.schema.json (compiled in) and
// against the rules a schema cannot state (unique names, references, sums). Throws Error with the
// file, the line or JSON pointer, and the cause.
ChallengeSpec load_spec(const std::filesystem::path& directory);

// The same of a text, without a directory. `file` names it in errors.
ChallengeSpec parse_spec(const std::string& text, const std::string& file);

// Throws Error, with the nearest name, when there is none of that name.
const ChallengeSpec& spec_named(std::span<const ChallengeSpec>, std::string_view name);

// Null when there is none of that name.
const CaseSpec* find_case(const ChallengeSpec&, std::string_view name);

// The same challenge as it is put to a submission on `device`. On the CPU nothing changes. On the
// simulated GPU only the cases that run there are left, with their params for it; a real one gets
// the same, but that it is timed at the full size. Rules keep those of their cases that are left.
ChallengeSpec spec_for(Device device, const ChallengeSpec&);

// Files that users name for cases that need them: CaseSpec::external -> path.
using ExternalFiles = std::map<std::string, std::string>;

// Gives the cases that need a file its path, and removes those whose file was not named.
void provide_files(ChallengeSpec&, const ExternalFiles&);

// The case with the time budget and the time limit that its pace gives it where par needs so long
// for the case that sets the pace.
CaseSpec paced(const CaseSpec&, double par_seconds);

}  // namespace assay
