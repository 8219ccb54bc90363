// Where each weight stands.
#pragma once

#include <cstdint>

#include "abi.h"
#include "blocks.h"

namespace {

// Offsets of one layer's matrices and norms in an array of all weights.
struct LayerAt {
  Index q, k, v, o, gate, up, down, attention_norm, query_norm, key_norm, ff_norm;
};

// An array of all weights in the blob's order: `matrices` of them in blocks, then the norms.
struct Layout {
  explicit Layout(const tt_config& config)
      : c(config), wide(Index{c.Hq} * c.hd), narrow(Index{c.Hkv} * c.hd) {
    embeddings = Index{c.V} * c.d;
    per_layer = Index{c.d} * (2 * wide + 2 * narrow + 3 * Index{c.ff});
    norms_per_layer = 2 * Index{c.d} + 2 * Index{c.hd};
    matrices = (c.tied ? 1 : 2) * embeddings + c.L * per_layer;
    size = matrices + c.L * norms_per_layer + c.d;
  }
  Index head() const { return c.tied ? 0 : embeddings; }
  Index final_norm() const { return size - c.d; }
  LayerAt layer(Index l) const {
    const Index q = (c.tied ? 1 : 2) * embeddings + l * per_layer, k = q + wide * c.d;
    const Index v = k + narrow * c.d, o = v + narrow * c.d, gate = o + wide * c.d;
    const Index up = gate + Index{c.ff} * c.d, down = up + Index{c.ff} * c.d;
    const Index norm = matrices + l * norms_per_layer;
    return {q, k, v, o, gate, up, down, norm, norm + c.d, norm + c.d + c.hd, norm + c.d + 2 * c.hd};
  }

  tt_config c;
  Index wide, narrow, embeddings, per_layer, norms_per_layer, matrices, size;
};

}  // namespace
