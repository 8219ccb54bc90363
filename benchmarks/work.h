// The least that an implementation of a timed case must do, for rooflines.
#pragma once

#include <optional>
#include <string>

#include "assay/case.h"
#include "assay/challenge.h"

namespace assay {

struct Work {
  double bytes = 0;  // memory traffic with cold caches: inputs read once, outputs written once
  double flops = 0;  // of matrix products only, each multiplication and each addition
};

// Absent when the challenge has no simple bound for this case.
std::optional<Work> work_of(const std::string& challenge, const CaseSpec&, const CasePlan&);

}  // namespace assay
