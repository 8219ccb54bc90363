// What a judge says -> marks. The reply is untrusted: it is read by rule, and what does not follow
// the rule is no opinion.
#pragma once

#include <string>
#include <vector>

#include "judge/rubric.h"

namespace assay::judge {

inline constexpr double kLowestMark = 0, kHighestMark = 10;

struct Mark {
  std::string key;
  double value = 0;  // kLowestMark to kHighestMark
  std::string reason;

  bool operator==(const Mark&) const = default;
};

struct ReadMarks {
  std::vector<Mark> marks;  // one for each criterion, in the rubric's order; empty with a problem
  std::string problem;      // one line, safe to print
};

// The reply holds a JSON object with a member {"mark": number, "reason": text} for each criterion.
// Text around it and members of other names are passed over. A reply with several such objects that
// differ is ambiguous, hence a problem, as are a missing criterion, a mark that is no number of the
// range, and a missing reason.
ReadMarks read_marks(const std::string& reply, const Rubric&);

// The mean by the rubric's weights. REQUIRES a mark for each criterion.
double overall(const std::vector<Mark>&, const Rubric&);

}  // namespace assay::judge
