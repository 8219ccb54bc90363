// Whether the tests of an answer in CUDA can be graded.
#pragma once

#include "assay/case.h"

namespace assay {

// Whether the challenge's folder has wrong examples in CUDA (examples/wrong_*.cu) that such tests
// should reject. Without them the dimension is left out on the simulator, see spec_for().
bool has_tests_in_cuda(const ChallengeSpec&);

}  // namespace assay
