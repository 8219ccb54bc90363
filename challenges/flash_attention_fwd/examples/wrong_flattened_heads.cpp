// fails: gqa_4to1 mqa
// Key matrices are taken in turn over all items and query heads.
#include "tiled.h"

struct Bug : Right {
  static std::int64_t key_matrix(const fa_params& p, std::int64_t b, std::int64_t h) {
    return (b * p.Hq + h) % (p.B * p.Hkv);
  }
};

TILED_FORWARD(Bug)
