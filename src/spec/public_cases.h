// The public cases of a challenge: challenges/<name>/public.json, described by
// challenges/public.schema.json. They are handed out with the task, and `assay check` runs them. No
// grade depends on them: they are not part of the spec, and changing them makes no result stale.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "assay/case.h"

namespace assay {

// The prefix of every public case's name; no case of a spec has it. A case's data is derived from
// the seed and its name, so no grading, whatever its seed, draws or fills anything as the public
// cases do.
inline constexpr const char* kPublicPrefix = "public_";

struct PublicCases {
  std::uint64_t seed = 0;
  std::vector<CaseSpec> cases;               // drawn cases come last, with `drawn` as in a spec
  std::map<std::string, std::string> about;  // what each case is, by name
  std::string hash;                          // of the file's bytes
};

// Reads public.json in the spec's folder. Throws Error with the file, the place and the cause, for
// schema violations, names already taken, params of a graded case, a capability without a case, or
// any number of timed cases other than one.
PublicCases load_public_cases(const ChallengeSpec&);

// The same from a text. `file` names it in errors.
PublicCases parse_public_cases(const ChallengeSpec&, const std::string& text,
                               const std::string& file);

// The challenge with these cases instead of its own. Its resource rules are dropped, because they
// are about cases that are gone; its hash covers both files.
ChallengeSpec public_spec(const ChallengeSpec&, const PublicCases&);

}  // namespace assay
