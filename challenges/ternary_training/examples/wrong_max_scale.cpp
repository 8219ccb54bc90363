// fails: max_scale quantize
// The scale is the largest weight, as for int8.
#include "quantized.h"

void spoil(const Block& block) {
  double scale = 0;
  for (Index j = 0; j < kBlock; ++j)
    scale = std::max(scale, std::abs(static_cast<double>(block.w[j])));
  block.set_scale(half_from(scale));
  block.set_codes(scale / 2);
}

QUANTIZE_WITH(spoil)
