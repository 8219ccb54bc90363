// The cases of a challenge that everybody may know: challenges/<name>/public.json, described by
// challenges/public.schema.json. They are handed out with the task, `assay check` runs them, and no
// grade hangs on them: they are no part of the spec, and a change of them makes no result old.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "assay/case.h"

namespace assay {

// Every public case has a name that begins so, and no case of a spec has. What a case is given is
// derived from the seed and its name: whatever seed a grading has, it draws and fills nothing as
// the public cases do.
inline constexpr const char* kPublicPrefix = "public_";

struct PublicCases {
  std::uint64_t seed = 0;
  std::vector<CaseSpec> cases;               // those drawn last, `drawn` as in a spec
  std::map<std::string, std::string> about;  // by name: what it is, in words
  std::string hash;                          // of the file's bytes
};

// Reads public.json in the spec's folder. Throws Error with the file, the place and the cause: what
// the schema refuses, and names that are taken, params of a case that is graded, a capability
// without a case, or another number of timed cases than one.
PublicCases load_public_cases(const ChallengeSpec&);

// The same of a text. `file` names it in errors.
PublicCases parse_public_cases(const ChallengeSpec&, const std::string& text,
                               const std::string& file);

// The challenge with these cases in the place of its own. Its rules for resources are left out, for
// they are about cases that are not there; its hash is that of both files.
ChallengeSpec public_spec(const ChallengeSpec&, const PublicCases&);

}  // namespace assay
