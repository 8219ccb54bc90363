// What harness and adapter agree on: how a case calls the submission.
#pragma once

#include <cstdint>

#include "../abi.h"

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
enum Handle { kW, kBlocks, kHandles };
}
namespace dequantize {
enum Handle { kBlocks, kW, kHandles };
}
namespace linear {
// What is judged is chosen by the secret, which never reaches the worker.
enum Handle { kX, kBlocks, kDy, kY, kDx, kDw, kSecret, kHandles };
}  // namespace linear
namespace blob_bytes {
enum Handle { kBytes, kHandles };
}
namespace train {
// Held-out documents, what they cost a perfect predictor, their kinds, and documents of another
// language never reach the worker.
enum Handle { kDocs, kBlob, kHeldOut, kCost, kKind, kForeign, kHandles };
}  // namespace train
// After those of train, whose blob is that of the training that was interrupted.
namespace train_part {
enum Handle { kWhole = train::kHandles, kState, kMoved, kHandles };
}
namespace logits {
enum Handle { kDocs, kBlob, kLogits, kHandles };
}
namespace dense {
enum Handle { kFrom, kTo, kHandles };
}
// Prompt and answer, and in a second phase another prompt, which continues the first answer, and
// its answer.
namespace generation {
enum Handle { kBlob, kState, kTokens, kGenerated, kMoreTokens, kMoreGenerated, kHandles };
}
namespace distill {
enum Handle { kTeacher, kStudent, kLoss, kGradient, kHandles };
}
namespace statistics {
enum Handle { kBlob, kBefore, kCounts, kHandles };
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
