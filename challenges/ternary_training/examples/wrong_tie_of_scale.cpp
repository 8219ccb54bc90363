// fails: half_way
// A mean between two numbers of binary16 always goes to the larger one.
#include "quantized.h"

void spoil(const Block& block) {
  block.set_scale(half_from(static_cast<float>(block.mean() * (1 + 0x1p-22))));
}

QUANTIZE_WITH(spoil)
