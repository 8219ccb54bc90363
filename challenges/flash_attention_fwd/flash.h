// What the parts of this challenge share, on both sides of the sandbox.
#pragma once

#include <cstdint>

#include "abi.h"

namespace assay::flash_attention_fwd {

// kSecret chooses the rows that are judged where not all are; no phase ever reveals it.
enum Handle { kQ, kK, kV, kAlibi, kSink, kKvLen, kO, kLse, kSecret };

// Handed to the adapter.
struct Params {
  fa_params p{};
  float softcap = 0;
  std::int32_t extra = 0;  // call fa_forward_extra
};

}  // namespace assay::flash_attention_fwd
