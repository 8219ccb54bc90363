// fails: ste_grad linear
// The gradient towards the inputs misses the scale, that of the latent weights has it.
#include "spoilt_linear.h"

void spoil(const Layer& layer) {
  for (Index i = 0; i < layer.rows * layer.cols; ++i)
    layer.dw[i] *= block_scale(layer.blocks + i / kBlock * kBytes);
}

LINEAR_WITH(spoil)
