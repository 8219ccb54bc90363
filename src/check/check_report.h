// The report of a public check: text for people and models, JSON for scripts.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "check/public_check.h"
#include "spec/public_cases.h"
#include "submission/submission.h"

namespace assay::check {

// Context of what was checked.
struct Subject {
  const Submission& answer;
  const ChallengeSpec& spec;       // public_spec() for the answer's device
  const ChallengeSpec& challenge;  // the whole challenge, for its resource rules
  const PublicCases& published;
  std::string known_by;  // how the challenge was recognised: Recognised::how, or "as asked"
  std::string assay_version;
  bool alone = false;  // the answer is a single file; its folder was not read
  // Whether the prompt named in the folder's attempt.json is a current one; nothing if it names
  // none.
  std::optional<bool> prompt_is_current{};
};

// The text shown to a model: the compiler's first lines, the first wrong cases with their first
// mismatches, unsupported features, memory, an indicative speed. Always printable; at most
// `most_bytes` bytes, cut at the end of a line.
inline constexpr std::size_t kFeedbackBytes = 8000;
std::string check_text(const PublicCheck&, const Subject&, std::size_t most_bytes = kFeedbackBytes);

// One object on one line, described by challenges/check.schema.json. check_text() is its field
// "feedback".
std::string check_json(const PublicCheck&, const Subject&);

}  // namespace assay::check
