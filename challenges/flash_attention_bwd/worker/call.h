// The agreement between harness and adapter on how a case calls the submission.
#pragma once

#include <cstdint>

#include "../abi.h"

namespace assay::flash_attention_bwd {

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
  kDlse,
  kDout,
  kO,
  kLse,
  kDq,
  kDk,
  kDv,
  kDbias,
  kHandles
};

// Which function a case calls; chained: fa_forward, then fa_backward with its o and lse.
enum class Entry : std::int32_t { plain, extra, varlen, bias, chained };

// Passed to the adapter.
struct Params {
  fa_params p{};
  float softcap = 0;
  Entry entry = Entry::plain;
  std::int32_t calls = 1;                 // the last call's outputs count
  std::int64_t total_q = 0, total_k = 0;  // of packed sequences
  fa_bias bias{};
};

}  // namespace assay::flash_attention_bwd
