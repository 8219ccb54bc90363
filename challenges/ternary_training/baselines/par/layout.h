// Where each weight stands, plain and packed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "abi.h"
#include "matrices.h"

namespace {

// A matrix [rows, cols] at an offset of all weights, and where its packings lie: towards the
// outputs and, for gradients, towards the inputs.
struct MatrixAt {
  Index rows = 0, cols = 0, offset = 0, forward = 0, backward = 0;
};

struct LayerAt {
  MatrixAt qkv, o, gate_up, down;
  Index attention_norm = 0, query_norm = 0, key_norm = 0, ff_norm = 0;
};

// An array of all weights in the blob's order: `matrices` of them in blocks, then the norms.
struct Layout {
  explicit Layout(const tt_config& config)
      : c(config),
        wide(Index{c.Hq} * c.hd),
        narrow(Index{c.Hkv} * c.hd),
        qkv(wide + 2 * narrow),
        ff(c.ff),
        d(c.d) {
    embedding = matrix(c.V, d);
    head = c.tied ? embedding : matrix(c.V, d);
    for (Index l = 0; l < c.L; ++l) {
      LayerAt at;
      at.qkv = matrix(qkv, d);
      at.o = matrix(d, wide);
      at.gate_up = matrix(2 * ff, d);
      at.down = matrix(d, ff);
      layers.push_back(at);
    }
    matrices = size;
    for (LayerAt& at : layers) {
      at.attention_norm = std::exchange(size, size + d);
      at.query_norm = std::exchange(size, size + c.hd);
      at.key_norm = std::exchange(size, size + c.hd);
      at.ff_norm = std::exchange(size, size + d);
    }
    final_norm = std::exchange(size, size + d);
  }

  template <class F>
  void each_matrix(F f) const {
    f(head);
    for (const LayerAt& l : layers) f(l.qkv), f(l.o), f(l.gate_up), f(l.down);
  }

  tt_config c;
  Index wide, narrow, qkv, ff, d, matrices = 0, size = 0, packed = 0, final_norm = 0;
  Index most_rows = 0, most_cols = 0;  // of any matrix
  MatrixAt embedding, head;
  std::vector<LayerAt> layers;

 private:
  MatrixAt matrix(Index rows, Index cols) {
    MatrixAt m{rows, cols, size, packed, packed + packed_size(cols, rows)};
    size += rows * cols;
    most_rows = std::max(most_rows, rows), most_cols = std::max(most_cols, cols);
    packed = m.backward + packed_size(rows, cols);
    return m;
  }
};

}  // namespace
