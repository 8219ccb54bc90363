// What the grade of one answer says: to people as text, to scripts and reward functions as JSON.
#pragma once

#include <string>

#include "check/stages.h"

namespace assay::check {

// Who graded what, beside the grade.
struct GradeFacts {
  const ChallengeSpec& spec;  // the whole challenge
  std::string path, known_by;
  std::string assay_version, assay_commit;
  Machine machine;
};

// The stages with their seconds, then what `assay show` says of a cell.
std::string grade_text(const StagedGrade&, const GradeFacts&);

// One object, described by challenges/grade.schema.json.
std::string grade_json(const StagedGrade&, const GradeFacts&);

}  // namespace assay::check
