// Whether tests that an answer in CUDA ships can be graded.
#pragma once

#include "assay/case.h"

namespace assay {

// The challenge's folder has wrong examples in CUDA (examples/wrong_*.cu), which such tests should
// reject. Without them the dimension is left out on the simulator, see spec_for().
bool has_tests_in_cuda(const ChallengeSpec&);

}  // namespace assay
