// What harness and adapter agree on: how a case calls the submission.
#pragma once

#include <cstdint>

#include "abi.h"

namespace assay::ternary_training {

enum Entry : std::int32_t { kQuantize, kDequantize, kLinear, kBlobBytes, kTrain, kLogits };

// Handles of the buffers, per entry.
namespace quantize {
enum { kW, kBlocks };
}
namespace dequantize {
enum { kBlocks, kW };
}
namespace linear {
enum { kX, kBlocks, kDy, kY, kDx, kDw };
}
namespace blob_bytes {
enum { kBytes };
}
namespace train {
// Held-out documents, what they cost a perfect predictor, their kinds, and documents of another
// language never reach the worker.
enum { kDocs, kBlob, kHeldOut, kCost, kKind, kForeign };
}  // namespace train
namespace logits {
enum { kDocs, kBlob, kLogits };
}

// Handed to the adapter.
struct Params {
  std::int64_t M = 0, rows = 0, cols = 0, n_docs = 0;
  tt_config config{};
  tt_budget budget{};
};

}  // namespace assay::ternary_training
