// Turns the outputs of one run of a case into a verdict. Submissions, baselines and examples are
// judged the same way.
#pragma once

#include <cstdint>

#include "assay/challenge.h"
#include "assay/results.h"
#include "processes/layout.h"

namespace assay::cases {

struct FinishedRun {
  const CaseSpec* spec = nullptr;
  const CasePlan* plan = nullptr;
  const processes::Layout* layout = nullptr;
  const Reference* reference = nullptr;
  BufferViews buffers;           // inputs and outputs
  BufferViews first;             // what inout buffers held before the call
  const void* output = nullptr;  // base of the output arena
  std::uint64_t poison_seed = 0;
  std::int32_t status = 0;  // what the call returned
  const CallbackServer* server = nullptr;
  const void* device = nullptr;  // base of the device arena, if the case has one
};

// Checks the status, the canaries, that outputs and inouts are untouched if the call had to fail,
// then runs the challenge's check. Fills verdict, error, bound, accuracy, detail and metrics. If
// outputs that pass still hold poison, the poison is replaced by a number and they are checked
// again.
void judge(const Challenge&, const FinishedRun&, CaseResult&);

const char* status_name(std::int32_t status);  // "ASSAY_EINVAL"

}  // namespace assay::cases
