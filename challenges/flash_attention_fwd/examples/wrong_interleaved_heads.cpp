// fails: gqa gqa_4to1
// Query head h reads key head h % Hkv: interleaved instead of blocked groups.
#include "tiled.h"

struct Bug : Right {
  static std::int64_t key_matrix(const fa_params& p, std::int64_t b, std::int64_t h) {
    return b * p.Hkv + h % p.Hkv;
  }
};

TILED_FORWARD(Bug)
