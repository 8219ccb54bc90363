// fails: nq_lt_nk lse_minus_inf
// Causality aligned to the top left corner.
#include "pairs.h"

struct Bug : Right {
  static std::int64_t end(const fa_params& p, std::int64_t i) {
    return p.causal != 0 ? std::min(p.Nk, i + 1) : p.Nk;
  }
};

PAIRWISE_BACKWARD(Bug)
