// Reads spec.json into a validated ChallengeSpec.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "assay/case.h"
#include "assay/device.h"

namespace assay {

const char* to_string(CaseGroup);
CaseGroup case_group(const std::string&);  // throws Error on an unknown name

// Reads `<directory>/spec.json` and validates it against challenges/spec.schema.json (compiled in)
// and against the rules that a schema cannot state (unique names, references, sums). Throws Error
// with the file, the line or JSON pointer, and the cause.
ChallengeSpec load_spec(const std::filesystem::path& directory);

// The same from a text, without a directory. `file` names it in errors.
ChallengeSpec parse_spec(const std::string& text, const std::string& file);

// Throws Error, suggesting the nearest name, if there is none of that name.
const ChallengeSpec& spec_named(std::span<const ChallengeSpec>, std::string_view name);

// True for cases that judge results only: memory, speed and what is learned in some time are left
// out.
bool tells_right_from_wrong(const CaseSpec&);

// Hashes of what verdicts rest on: the rules, each case that tells right from wrong, and the cases
// in `measuring`. Sorted.
std::vector<std::string> judging_hashes(const ChallengeSpec&,
                                        const std::set<std::string>& measuring = {});

// Whether what judged then, by the hashes above, still judges. Cases may have been added: what
// failed fails still.
bool still_judges(const ChallengeSpec&, const std::vector<std::string>& hashes);

// Null if there is none of that name.
const CaseSpec* find_case(const ChallengeSpec&, std::string_view name);

// The challenge as it is given to a submission on `device`. Unchanged on the CPU. On the simulated
// GPU only the cases that run there remain, with their params for it. A real GPU gets the same,
// except that timed cases have their full size. Rules keep their remaining cases.
ChallengeSpec spec_for(Device device, const ChallengeSpec&);

// Files that users name for cases that need them: CaseSpec::external -> path.
using ExternalFiles = std::map<std::string, std::string>;

// Sets the path of cases that need a file, and removes those whose file was not named.
void provide_files(ChallengeSpec&, const ExternalFiles&);

// The case with the time budget and the time limit of its pace, given that par needs `par_seconds`
// for the case that sets the pace.
CaseSpec paced(const CaseSpec&, double par_seconds);

}  // namespace assay
