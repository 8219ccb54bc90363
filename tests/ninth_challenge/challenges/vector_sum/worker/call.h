// What harness and adapter agree on: how a case calls the submission.
#pragma once

#include "../abi.h"

namespace assay::vector_sum {

enum Handle { kX, kSum, kHandles };

// Handed to the adapter.
struct Params {
  vs_params p{};
};

}  // namespace assay::vector_sum
