// fails: ste_grad linear
// The gradient of the latent weights is stopped where the weight was rounded to zero.
#include "spoilt_linear.h"

void spoil(const Layer& layer) {
  float w[kBlock];
  for (Index i = 0; i < layer.rows * layer.cols; i += kBlock) {
    dequantize_block(layer.blocks + i / kBlock * kBytes, w);
    for (Index j = 0; j < kBlock; ++j) {
      if (w[j] == 0) layer.dw[i + j] = 0;
    }
  }
}

LINEAR_WITH(spoil)
