// fails: group_rows
// Groups run down a column: the scale is that of 128 weights of different rows.
#include "quantized.h"

void spoil(const Block& block) {
  if (block.row > 0) std::memcpy(block.bytes, block.bytes - block.per_row * kBytes, 2);
}

QUANTIZE_WITH(spoil)
