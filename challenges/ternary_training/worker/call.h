// The agreement between harness and adapter on how a case calls the submission.
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

// Handles of the buffers, by entry.
namespace quantize {
enum Handle { kW, kBlocks, kHandles };
}
namespace dequantize {
enum Handle { kBlocks, kW, kHandles };
}
namespace linear {
// kSecret chooses what is judged; it never reaches the worker.
enum Handle { kX, kBlocks, kDy, kY, kDx, kDw, kSecret, kHandles };
}  // namespace linear
namespace blob_bytes {
enum Handle { kBytes, kHandles };
}
namespace train {
// Held-out documents, their cost to a perfect predictor, their kinds, and documents of another
// language never reach the worker.
enum Handle { kDocs, kBlob, kHeldOut, kCost, kKind, kForeign, kHandles };
}  // namespace train
// These follow the handles of train, whose blob is that of the interrupted training.
namespace train_part {
enum Handle { kWhole = train::kHandles, kState, kMoved, kLater, kLaterResumed, kHandles };
}
namespace logits {
enum Handle { kDocs, kBlob, kLogits, kHandles };
}
namespace dense {
enum Handle { kFrom, kTo, kHandles };
}
// Prompt and answer; in a second phase another prompt, which continues the first answer, and its
// answer.
namespace generation {
enum Handle { kBlob, kState, kTokens, kGenerated, kMoreTokens, kMoreGenerated, kHandles };
}
namespace distill {
enum Handle { kTeacher, kStudent, kLoss, kGradient, kHandles };
}
namespace statistics {
enum Handle { kBlob, kBefore, kCounts, kHandles };
}

// Passed to the adapter.
struct Params {
  std::int64_t M = 0, rows = 0, cols = 0, n_docs = 0;
  tt_config config{};
  tt_budget budget{};
  tt_generation generation{};                 // for the first phase
  std::int64_t more_new = 0, more_steps = 0;  // for the second
  std::int64_t interrupted_at = 0;            // tt_train_part
  std::int64_t interrupted_again_at = 0;      // 0: not
  float temperature = 1;                      // tt_distill_loss, on [M, cols]
};

}  // namespace assay::ternary_training
