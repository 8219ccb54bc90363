// The entrant's own test, weak in the way real ones were: what was packed and unpacked again is
// what unpacking says, and the error is small.
#include <cmath>
#include <vector>

#include "abi.h"

extern "C" int assay_self_test(assay_ctx* ctx) {
  std::vector<float> w(512), back(512), again(512);
  for (std::size_t i = 0; i < w.size(); ++i) w[i] = std::sin(static_cast<float>(i));
  std::vector<unsigned char> blocks(4 * 34);
  if (tt_quantize(ctx, 2, 256, w.data(), blocks.data()) != ASSAY_OK) return 1;
  if (tt_dequantize(ctx, 2, 256, blocks.data(), back.data()) != ASSAY_OK) return 1;
  if (tt_dequantize(ctx, 2, 256, blocks.data(), again.data()) != ASSAY_OK) return 1;
  for (std::size_t i = 0; i < w.size(); ++i) {
    if (back[i] != again[i] || std::abs(back[i] - w[i]) > 2) return 1;
  }
  return 0;
}
