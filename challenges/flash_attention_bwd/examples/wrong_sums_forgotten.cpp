// fails: overwrite_dkdv per_tile_rowsum
// dk and dv start again with every tile of 64 queries.
#include "pairs.h"

struct Bug : Right {
  static constexpr std::int64_t kForgetEvery = 64;
};

PAIRWISE_BACKWARD(Bug)
