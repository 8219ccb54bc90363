// What the parts of this challenge share, on both sides of the sandbox.
#pragma once

#include <cstdint>

#include "abi.h"

namespace assay::flash_attention_bwd {

enum Handle { kQ, kK, kV, kAlibi, kSink, kKvLen, kDlse, kDout, kO, kLse, kDq, kDk, kDv };

// Handed to the adapter.
struct Params {
  fa_params p{};
  float softcap = 0;
  std::int32_t extra = 0;  // call fa_backward_extra
  std::int32_t calls = 1;  // the last one's outputs count
};

}  // namespace assay::flash_attention_bwd
