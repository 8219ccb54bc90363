// fails: uniform_long v_large_cancel causal_64
// Running sums are kept in bfloat16.
#include "tiled.h"

struct Bug : Right {
  static float sum(float x) {
    std::uint32_t u = to_bits(x);
    u = (u + 0x7fffu + (u >> 16 & 1u)) & 0xffff0000u;
    return from_bits(u);
  }
};

TILED_FORWARD(Bug)
