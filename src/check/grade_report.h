// The report of one submission's grade: text for people, JSON for scripts and reward functions.
#pragma once

#include <string>

#include "check/stages.h"

namespace assay::check {

// Facts about the grading, besides the grade.
struct GradeFacts {
  const ChallengeSpec& spec;  // the whole challenge
  std::string path, known_by;
  std::string assay_version, assay_commit;
  Machine machine;
  bool quick = false;  // only the cases of a quick run were asked for
};

// The stages with their seconds, then the text of `assay show` for the cell.
std::string grade_text(const StagedGrade&, const GradeFacts&);

// One object, described by challenges/grade.schema.json.
std::string grade_json(const StagedGrade&, const GradeFacts&);

}  // namespace assay::check
