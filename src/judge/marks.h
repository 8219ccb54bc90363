// Reads marks from a judge's reply. The reply is untrusted: it is parsed strictly, and a reply that
// breaks the rules is not an opinion.
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
  std::vector<Mark> marks;  // one per criterion, in the rubric's order; empty if there is a problem
  std::string problem;      // one line, safe to print
};

// The reply must contain a JSON object with a member {"mark": number, "reason": text} for each
// criterion. Text around it and members with other names are ignored. Problems are: several such
// objects that differ (ambiguous), a missing criterion, a mark that is not a number in range, and a
// missing reason.
ReadMarks read_marks(const std::string& reply, const Rubric&);

// The mean, weighted by the rubric. REQUIRES a mark for each criterion.
double overall(const std::vector<Mark>&, const Rubric&);

}  // namespace assay::judge
