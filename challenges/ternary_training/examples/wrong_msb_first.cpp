// fails: pack_bytes quantize
// The first code of a byte in its high bits.
#include "quantized.h"

void spoil(const Block& block) {
  for (Index j = 2; j < kBytes; ++j) {
    const unsigned b = block.bytes[j];
    block.bytes[j] = static_cast<std::uint8_t>(b << 6 | (b << 2 & 0x30) | (b >> 2 & 0x0c) | b >> 6);
  }
}

QUANTIZE_WITH(spoil)
