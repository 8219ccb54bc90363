// The agreement between harness and adapter on how a case calls the submission.
#pragma once

#include <cstdint>

#include "../abi.h"

namespace assay::beam_search {

// Passed to the adapter.
struct Params {
  bs_params search{};    // pointers are filled in by the adapter
  bs_options options{};  // likewise; only for kWithOptions
  std::int32_t V = 0, kind = BS_LOG_PROBS;
  std::int32_t null_step = 0, null_lm = 0;
};

// Routines of the adapter.
enum Entry : std::int32_t { kPlain, kWithOptions };

// The model's seed belongs to a phase that never comes, so only the harness sees it.
enum Handle {
  kPromptLen,
  kPromptStart,
  kPrompt,
  kModelSeed,
  kSeq,
  kLen,
  kAcc,
  kScore,
  kFinished,
  kNOut,
  kPlainHandles,
  // only for kWithOptions: the lengths of the banned sequences, and their tokens in one piece
  kBadLen = kPlainHandles,
  kBad,
  kHandles,
  kSteps = kHandles  // not a buffer of a case: what witness.cpp saw the model answer
};

// The one callback. A request is a StepHeader, then parent i64[n], item i32[n], token i32[n]; the
// response is state i64[n], then, as its bulk, rows [n, V] of f32 or what the options say.
enum CallKind : std::uint32_t { kStep };

struct StepHeader {
  std::int64_t n = 0;
};

// A step as witness.cpp records it. It is followed by parent i64[n], item i32[n], token i32[n] and,
// if the status is ASSAY_OK, state i64[n] and the rows.
struct RecordedStep {
  std::int32_t n = 0, status = 0;  // n == 0: the question could not be read
};

}  // namespace assay::beam_search
