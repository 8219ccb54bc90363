// slow: time_linear
// Correct, but every weight is taken out of its block again for every product.
#include "spoilt_linear.h"

void spoil(const Layer& layer) {
  for (Index m = 0; m < layer.M; ++m) {
    for (Index n = 0; n < layer.rows; ++n) {
      float sum = 0;
      for (Index k = 0; k < layer.cols; ++k) {
        const std::uint8_t* block = layer.blocks + (n * layer.cols + k) / kBlock * kBytes;
        const int code = block[2 + k % kBlock / 4] >> (k % 4 * 2) & 3;
        sum += layer.x[m * layer.cols + k] * static_cast<float>(code - 1) * block_scale(block);
      }
      layer.y[m * layer.rows + n] = sum;
    }
  }
}

LINEAR_WITH(spoil)
