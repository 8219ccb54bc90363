// fails: tie_half
// A weight of exactly half the scale rounds away from zero.
#include "quantized.h"

void spoil(const Block& block) {
  const float half = block_scale(block.bytes) / 2;
  for (Index j = 0; j < kBlock; ++j) {
    if (half != 0 && std::abs(block.w[j]) == half) block.set_code(j, block.w[j] > 0 ? 2 : 0);
  }
}

QUANTIZE_WITH(spoil)
