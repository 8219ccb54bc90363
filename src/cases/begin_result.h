// The result of a case that has not run yet.
#pragma once

#include <string>

#include "assay/challenge.h"
#include "assay/results.h"

namespace assay::cases {

inline CaseResult begin_result(const Challenge& challenge, const CaseSpec& spec,
                               Verdict verdict = Verdict::skipped, std::string detail = "") {
  CaseResult result;
  result.name = spec.name;
  result.group = spec.group;
  result.shape = challenge.shape(spec);
  result.verdict = verdict;
  result.detail = std::move(detail);
  return result;
}

}  // namespace assay::cases
