// The agreement between harness and adapter on how a case calls the submission.
#pragma once

#include <cstdint>

#include "../abi.h"

namespace assay::layer_norm_backward {

enum Mode : std::int32_t {
  kPlain,            // forward, backward
  kTwice,            // backward twice from one cache; the second result counts
  kOlderCache,       // forward of x, forward of another input, backward of x
  kResidual,         // ln_backward_residual
  kRms,              // rms_backward
  kInvalidBackward,  // only ln_backward, with params that it must refuse
  kInvalidForward,   // only ln_forward, likewise
};

enum Handle {
  kX,
  kGamma,
  kBeta,
  kDy,
  kY,
  kCache,
  kCacheBytes,
  kDx,
  kDgamma,
  kDbeta,
  kOtherX,
  kDres,
  kHandles
};

// Passed to the adapter.
struct Params {
  ln_params p{};
  std::int32_t mode = kPlain;
};

// Capacity of the cache buffer.
constexpr std::int64_t cache_capacity(std::int64_t rows) { return 64 * rows + 4096; }

}  // namespace assay::layer_norm_backward
