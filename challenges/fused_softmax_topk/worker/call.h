// The agreement between harness and adapter on how a case calls the submission.
#pragma once

#include <cstdint>

#include "../abi.h"

namespace assay::fused_softmax_topk {

// Routines of the adapter.
enum Entry : std::int32_t { kTopK, kLogTopK, kTopP };

// kCount is null unless the entry is kTopP.
enum Handle { kLogits, kIdx, kProb, kLse, kCount, kHandles };

// Passed to the adapter.
struct Params {
  stk_params p{};
  float top_p = 0;
};

}  // namespace assay::fused_softmax_topk
