// fails: noncausal rising_max
// The causal mask is hard-wired.
#include "tiled.h"

struct Bug : Right {
  static std::int64_t end(const fa_params& p, std::int64_t i) {
    return std::clamp<std::int64_t>(i + p.Nk - p.Nq + 1, 0, p.Nk);
  }
};

TILED_FORWARD(Bug)
