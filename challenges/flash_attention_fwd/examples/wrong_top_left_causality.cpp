// fails: nq_lt_nk decode_one_query
// Causality aligned to the top left corner: query i sees keys up to i, whatever Nq and Nk.
#include "tiled.h"

struct Bug : Right {
  static std::int64_t end(const fa_params& p, std::int64_t i) {
    return p.causal != 0 ? std::min(p.Nk, i + 1) : p.Nk;
  }
};

TILED_FORWARD(Bug)
