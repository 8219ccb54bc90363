// What harness and adapter agree on: how a case calls the submission.
#pragma once

#include <cstdint>

#include "abi.h"

namespace assay::ternary_training {

enum Entry : std::int32_t {
  kQuantize,
  kDequantize,
  kLinear,
  kBlobBytes,
  kTrain,
  kLogits,
  kPackDense,
  kUnpackDense,
  kLinearBf16,
  kGenerate,
  kTrainPart,
  kStatistics,
  kDistill
};

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
// After those of train, whose blob is that of the training that was interrupted.
namespace train_part {
enum { kWhole = train::kForeign + 1, kState, kMoved };
}
namespace logits {
enum { kDocs, kBlob, kLogits };
}
namespace dense {
enum { kFrom, kTo };
}
// Prompt and answer, and in a second phase another prompt, which continues the first answer, and
// its answer.
namespace generation {
enum { kBlob, kState, kTokens, kGenerated, kMoreTokens, kMoreGenerated };
}
namespace distill {
enum { kTeacher, kStudent, kLoss, kGradient };
}
namespace statistics {
enum { kBlob, kBefore, kCounts };
}

// Handed to the adapter.
struct Params {
  std::int64_t M = 0, rows = 0, cols = 0, n_docs = 0;
  tt_config config{};
  tt_budget budget{};
  tt_generation generation{};                 // of the first phase
  std::int64_t more_new = 0, more_steps = 0;  // of the second
  std::int64_t interrupted_at = 0;            // tt_train_part
  float temperature = 1;                      // tt_distill_loss, on [M, cols]
};

}  // namespace assay::ternary_training
