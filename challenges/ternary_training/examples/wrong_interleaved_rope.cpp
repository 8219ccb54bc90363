// fails: rope_interleaved train_lag logits
// Turns neighbours (2i, 2i + 1), where the format pairs i with i + hd/2.
#include "with_pass.h"

struct Bug : Pass {
  using Pass::Pass;
  void rope(Index heads, float* x, float direction) const override {
    const Index half = c_.hd / 2;
    for (Index t = 0; t < T_ * heads; ++t) {
      float *v = x + t * c_.hd, sorted[1024];
      for (Index i = 0; i < half; ++i) sorted[i] = v[2 * i], sorted[half + i] = v[2 * i + 1];
      std::copy_n(sorted, c_.hd, v);
    }
    Pass::rope(heads, x, direction);
    for (Index t = 0; t < T_ * heads; ++t) {
      float *v = x + t * c_.hd, sorted[1024];
      std::copy_n(v, c_.hd, sorted);
      for (Index i = 0; i < half; ++i) v[2 * i] = sorted[i], v[2 * i + 1] = sorted[half + i];
    }
  }
};

RUN_WITH(Bug)
