// What a public check says: to people and models as text, to scripts as JSON.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "check/public_check.h"
#include "spec/public_cases.h"
#include "submission/submission.h"

namespace assay::check {

// About what was checked.
struct Subject {
  const Submission& answer;
  const ChallengeSpec& spec;       // public_spec() as it is put to the answer's device
  const ChallengeSpec& challenge;  // the whole challenge, for the points that resources earn
  const PublicCases& published;
  std::string known_by;  // how the challenge is known: Recognised::how, or "as asked"
  std::string assay_version;
  bool alone = false;  // the answer is a file, whose folder was not looked at
  // Whether the prompt that the folder's attempt.json names is one of today's; nothing where it
  // names none.
  std::optional<bool> prompt_is_current{};
};

// The text that a model is shown: the compiler's first lines, the first wrong cases with their
// first mismatches, what is left out, memory, an indicative speed. Printable, whatever the answer
// did; at most so many bytes, cut at a line's end.
inline constexpr std::size_t kFeedbackBytes = 8000;
std::string check_text(const PublicCheck&, const Subject&, std::size_t most_bytes = kFeedbackBytes);

// One object on one line, described by challenges/check.schema.json. check_text() is its field
// "feedback".
std::string check_json(const PublicCheck&, const Subject&);

}  // namespace assay::check
