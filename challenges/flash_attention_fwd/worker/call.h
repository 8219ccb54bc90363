// The agreement between harness and adapter on how a case calls the submission.
#pragma once

#include <cstdint>

#include "../abi.h"

namespace assay::flash_attention_fwd {

// kSecret chooses the rows that are judged if not all are; its phase never comes, so no worker sees
// it.
enum Handle {
  kQ,
  kK,
  kV,
  kAlibi,
  kSink,
  kKvLen,
  kCuQ,
  kCuK,
  kBias,
  kScales,
  kO,
  kLse,
  kSecret,
  kHandles
};

// Which function a case calls.
enum class Entry : std::int32_t { plain, extra, varlen, bias, fp8 };

// Passed to the adapter.
struct Params {
  fa_params p{};
  float softcap = 0;
  Entry entry = Entry::plain;
  std::int64_t total_q = 0, total_k = 0;  // of packed sequences
  fa_bias bias{};
};

}  // namespace assay::flash_attention_fwd
