// fails: tiny_group subnormal_scale zero_group
// The scale is at least 1e-5, against division by zero.
#include "quantized.h"

void spoil(const Block& block) {
  const double scale = std::max(block.mean(), 1e-5);
  block.set_scale(half_from(scale));
  block.set_codes(scale / 2);
}

QUANTIZE_WITH(spoil)
