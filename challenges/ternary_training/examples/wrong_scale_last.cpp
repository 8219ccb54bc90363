// fails: pack_bytes quantize
// The scale behind the codes, as formats with groups of 256 have it.
#include "quantized.h"

void spoil(const Block& block) { std::rotate(block.bytes, block.bytes + 2, block.bytes + kBytes); }

QUANTIZE_WITH(spoil)
