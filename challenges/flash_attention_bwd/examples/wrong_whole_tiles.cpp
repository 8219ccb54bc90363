// fails: uneven_63 uneven_65 uneven_300
// Only whole tiles of 64 keys; the rest is dropped.
#include "pairs.h"

struct Bug : Right {
  static std::int64_t end(const fa_params& p, std::int64_t i) {
    return std::min(Right::end(p, i), p.Nk / 64 * 64);
  }
};

PAIRWISE_BACKWARD(Bug)
