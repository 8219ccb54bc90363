// fails: head_mix
// The matrices are numbered head by head instead of item by item.
#include "tiled.h"

struct Bug : Right {
  static std::int64_t query_matrix(const fa_params& p, std::int64_t b, std::int64_t h) {
    return h * p.B + b;
  }
};

TILED_FORWARD(Bug)
