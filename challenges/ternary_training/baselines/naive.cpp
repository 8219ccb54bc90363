// The plain implementation: one document at a time, one thread, loops as the formulas have them.
//
// Training keeps latent fp32 weights. Every step rounds them to blocks, runs the model with what
// the blocks say, and applies the gradients to the latent weights as if rounding were the identity.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "abi.h"
#include "naive/blocks.h"
#include "naive/decoder.h"
#include "naive/layout.h"
#include "naive/matrices.h"
#include "naive/memory.h"
#include "naive/pass.h"
#include "naive/trainer.h"

namespace {

template <class ModelPass>
int logits_with(assay_ctx* ctx, const tt_config& c, const std::uint8_t* blob,
                const std::uint16_t* docs, Index n_docs, float* logits) {
  const Layout at(c);
  const Buffer w(ctx, at.size);
  ModelPass pass(ctx, at);
  if (w.data == nullptr || !pass.ready()) return ASSAY_ENOMEM;
  for (Index i = 0; i < at.matrices / kBlock; ++i)
    dequantize_block(blob + i * kBytes, w + i * kBlock);
  std::memcpy(w + at.matrices, blob + at.matrices / kBlock * kBytes,
              static_cast<std::size_t>(at.size - at.matrices) * 4);
  const Index per_doc = Index{c.T} * c.V;
  for (Index i = 0; i < n_docs; ++i) {
    std::copy_n(pass.run(w, docs + i * c.T), per_doc, logits + i * per_doc);
  }
  return ASSAY_OK;
}

bool valid(const tt_config* c) {
  if (c == nullptr || c->size != sizeof(tt_config)) return false;
  for (const std::int32_t n : {c->V, c->d, c->L, c->Hq, c->Hkv, c->hd, c->ff}) {
    if (n <= 0) return false;
  }
  const bool blocks =
      c->d % kBlock == 0 && Index{c->Hq} * c->hd % kBlock == 0 && c->ff % kBlock == 0;
  return blocks && c->V <= 65536 && c->T >= 2 && c->hd % 2 == 0 && c->Hq % c->Hkv == 0 &&
         (c->tied == 0 || c->tied == 1);
}

bool valid_matrix(Index rows, Index cols, const void* a, const void* b) {
  return rows >= 0 && cols >= 0 && cols % kBlock == 0 &&
         (rows * cols == 0 || (a != nullptr && b != nullptr));
}

}  // namespace

extern "C" size_t tt_blob_bytes(const tt_config* c) {
  if (!valid(c)) return 0;
  const Layout at(*c);
  return static_cast<std::size_t>(at.matrices / kBlock * kBytes + 4 * (at.size - at.matrices));
}

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const uint16_t* docs, int64_t n_docs,
                        const tt_budget* budget, void* blob) {
  if (!valid(c) || n_docs < 0 || (n_docs > 0 && docs == nullptr) || budget == nullptr ||
      blob == nullptr) {
    return ASSAY_EINVAL;
  }
  return train_with<Trainer<>>(ctx, *c, docs, n_docs, *budget, static_cast<std::uint8_t*>(blob));
}

extern "C" int tt_quantize(assay_ctx*, int64_t rows, int64_t cols, const float* w,
                           uint8_t* blocks) {
  if (!valid_matrix(rows, cols, w, blocks)) return ASSAY_EINVAL;
  for (Index i = 0; i < rows * cols / kBlock; ++i)
    quantize_block(w + i * kBlock, blocks + i * kBytes);
  return ASSAY_OK;
}

extern "C" int tt_dequantize(assay_ctx*, int64_t rows, int64_t cols, const uint8_t* blocks,
                             float* w) {
  if (!valid_matrix(rows, cols, w, blocks)) return ASSAY_EINVAL;
  for (Index i = 0; i < rows * cols / kBlock; ++i)
    dequantize_block(blocks + i * kBytes, w + i * kBlock);
  return ASSAY_OK;
}

extern "C" int tt_linear(assay_ctx* ctx, int64_t M, int64_t rows, int64_t cols, const float* x,
                         const uint8_t* blocks, const float* dy, float* y, float* dx,
                         float* dw_latent) {
  if (M < 0 || !valid_matrix(rows, cols, blocks, dw_latent)) return ASSAY_EINVAL;
  if (M * cols > 0 && (x == nullptr || dx == nullptr)) return ASSAY_EINVAL;
  if (M * rows > 0 && (dy == nullptr || y == nullptr)) return ASSAY_EINVAL;
  const Buffer w(ctx, rows * cols);
  if (w.data == nullptr) return ASSAY_ENOMEM;
  tt_dequantize(ctx, rows, cols, blocks, w);
  std::fill_n(dx, M * cols, 0.0f);
  std::fill_n(dw_latent, rows * cols, 0.0f);
  forward(M, rows, cols, x, w, y);
  backward_input(M, rows, cols, dy, w, dx);
  backward_weight(M, rows, cols, dy, x, dw_latent);
  return ASSAY_OK;
}

extern "C" int tt_logits(assay_ctx* ctx, const tt_config* c, const void* blob, const uint16_t* docs,
                         int64_t n_docs, float* logits) {
  if (!valid(c) || n_docs < 0 || blob == nullptr ||
      (n_docs > 0 && (docs == nullptr || logits == nullptr))) {
    return ASSAY_EINVAL;
  }
  return logits_with<Pass>(ctx, *c, static_cast<const std::uint8_t*>(blob), docs, n_docs, logits);
}

// --- optional functions

extern "C" int tt_pack_dense(assay_ctx*, int64_t rows, int64_t cols, const uint8_t* blocks,
                             uint8_t* dense) {
  if (!valid_matrix(rows, cols, blocks, dense)) return ASSAY_EINVAL;
  for (Index i = 0; i < rows * cols / kBlock; ++i)
    pack_dense_block(blocks + i * kBytes, dense + i * kDenseBytes);
  return ASSAY_OK;
}

extern "C" int tt_unpack_dense(assay_ctx*, int64_t rows, int64_t cols, const uint8_t* dense,
                               uint8_t* blocks) {
  if (!valid_matrix(rows, cols, dense, blocks)) return ASSAY_EINVAL;
  for (Index i = 0; i < rows * cols / kBlock; ++i)
    unpack_dense_block(dense + i * kDenseBytes, blocks + i * kBytes);
  return ASSAY_OK;
}

extern "C" int tt_linear_bf16(assay_ctx* ctx, int64_t M, int64_t rows, int64_t cols,
                              const uint16_t* x, const uint8_t* blocks, const uint16_t* dy,
                              uint16_t* y, uint16_t* dx, float* dw_latent) {
  if (M < 0 || !valid_matrix(rows, cols, blocks, dw_latent)) return ASSAY_EINVAL;
  if (M * cols > 0 && (x == nullptr || dx == nullptr)) return ASSAY_EINVAL;
  if (M * rows > 0 && (dy == nullptr || y == nullptr)) return ASSAY_EINVAL;
  const Buffer w(ctx, rows * cols), x32(ctx, M * cols), dy32(ctx, M * rows), y32(ctx, M * rows),
      dx32(ctx, M * cols);
  for (const Buffer* b : {&w, &x32, &dy32, &y32, &dx32}) {
    if (b->data == nullptr) return ASSAY_ENOMEM;
  }
  for (Index i = 0; i < rows * cols / kBlock; ++i)
    dequantize_block(blocks + i * kBytes, w + i * kBlock);
  std::transform(x, x + M * cols, x32.data, from_bf16);
  std::transform(dy, dy + M * rows, dy32.data, from_bf16);
  std::fill_n(dw_latent, rows * cols, 0.0f);
  forward(M, rows, cols, x32, w, y32);
  backward_input(M, rows, cols, dy32, w, dx32);
  backward_weight(M, rows, cols, dy32, x32, dw_latent);
  std::transform(y32.data, y32 + M * rows, y, to_bf16);
  std::transform(dx32.data, dx32 + M * cols, dx, to_bf16);
  return ASSAY_OK;
}

namespace {

bool valid_generation(const tt_config* c, const tt_generation* g) {
  return valid(c) && g != nullptr && g->size == sizeof(tt_generation) && g->n_docs >= 0 &&
         g->position >= 0 && g->n_new >= 1 && g->steps >= 0 && g->position <= c->T &&
         g->n_new <= c->T - g->position && g->steps <= c->T - g->position - g->n_new;
}

}  // namespace

extern "C" int tt_generate(assay_ctx* ctx, const tt_config* c, const void* blob,
                           const tt_generation* g, const uint16_t* tokens, float* state,
                           uint16_t* generated) {
  if (!valid_generation(c, g) || blob == nullptr) return ASSAY_EINVAL;
  if (g->n_docs > 0 &&
      (tokens == nullptr || state == nullptr || (g->steps > 0 && generated == nullptr))) {
    return ASSAY_EINVAL;
  }
  return generate_with<Decoder>(ctx, *c, static_cast<const std::uint8_t*>(blob), *g, tokens, state,
                                generated);
}

extern "C" int tt_train_part(assay_ctx* ctx, const tt_config* c, const uint16_t* docs,
                             int64_t n_docs, const tt_budget* budget, int32_t resume, int64_t until,
                             void* state, void* blob) {
  if (!valid(c) || n_docs < 0 || (n_docs > 0 && docs == nullptr) || budget == nullptr ||
      state == nullptr || (resume != 0 && resume != 1) || until < 0) {
    return ASSAY_EINVAL;
  }
  return train_part_with<Trainer<>>(ctx, *c, docs, n_docs, *budget, resume == 1, until,
                                    static_cast<std::uint8_t*>(state),
                                    static_cast<std::uint8_t*>(blob));
}

extern "C" int tt_blob_statistics(assay_ctx* ctx, const tt_config* c, const void* blob,
                                  const void* before, int64_t* counts) {
  if (!valid(c) || blob == nullptr || counts == nullptr) return ASSAY_EINVAL;
  const Layout at(*c);
  const Index most = std::max({Index{c->d}, at.wide, Index{c->ff}});
  const Buffer used(ctx, most);
  if (used.data == nullptr) return ASSAY_ENOMEM;
  const auto *now = static_cast<const std::uint8_t*>(blob),
             *then = static_cast<const std::uint8_t*>(before);
  if (then == nullptr) then = now;
  const auto matrix = [&](Index rows, Index cols) {
    std::fill_n(counts, 7, 0);
    std::fill_n(used.data, cols, 0.0f);
    for (Index row = 0; row < rows; ++row) {
      bool alive = false;
      for (Index col = 0; col < cols; col += kBlock, now += kBytes, then += kBytes) {
        float a[kBlock], b[kBlock];
        dequantize_block(now, a);
        dequantize_block(then, b);
        for (Index j = 0; j < kBlock; ++j) {
          ++counts[a[j] < 0 ? 0 : a[j] > 0 ? 2 : 1];
          counts[5] += (a[j] < 0) != (b[j] < 0) || (a[j] > 0) != (b[j] > 0);
          counts[6] += (a[j] < 0 && b[j] > 0) || (a[j] > 0 && b[j] < 0);
          if (a[j] == 0) continue;
          alive = true;
          used[col + j] = 1;
        }
      }
      counts[3] += !alive;
    }
    counts[4] = std::count(used.data, used + cols, 0.0f);
    counts += 7;
  };
  for (int i = 0; i < 2 - c->tied; ++i) matrix(c->V, c->d);
  for (Index l = 0; l < c->L; ++l) {
    matrix(at.wide, c->d);
    for (int i = 0; i < 2; ++i) matrix(at.narrow, c->d);
    matrix(c->d, at.wide);
    for (int i = 0; i < 2; ++i) matrix(c->ff, c->d);
    matrix(c->d, c->ff);
  }
  return ASSAY_OK;
}

extern "C" int tt_distill_loss(assay_ctx*, int64_t M, int64_t V, float temperature,
                               const float* teacher, const float* student, float* loss,
                               float* gradient) {
  if (M < 0 || V < 0 || !(temperature > 0) || std::isinf(temperature)) return ASSAY_EINVAL;
  if ((M > 0 && loss == nullptr) ||
      (M * V > 0 && (teacher == nullptr || student == nullptr || gradient == nullptr))) {
    return ASSAY_EINVAL;
  }
  for (Index m = 0; m < M; ++m, teacher += V, student += V, gradient += V) {
    float most_t = -std::numeric_limits<float>::infinity(), most_s = most_t;
    for (Index v = 0; v < V; ++v) {
      most_t = std::max(most_t, teacher[v]);
      most_s = std::max(most_s, student[v]);
    }
    double sum_t = 0, sum_s = 0, total = 0;
    for (Index v = 0; v < V; ++v) {
      sum_t += std::exp((teacher[v] - most_t) / temperature);
      sum_s += std::exp((student[v] - most_s) / temperature);
    }
    const auto log_t = static_cast<float>(std::log(sum_t)),
               log_s = static_cast<float>(std::log(sum_s));
    for (Index v = 0; v < V; ++v) {
      const float log_p = (teacher[v] - most_t) / temperature - log_t,
                  log_q = (student[v] - most_s) / temperature - log_s;
      const float p = std::exp(log_p), q = std::exp(log_q);
      total += p * (log_p - log_q);
      gradient[v] = temperature * (q - p);
    }
    loss[m] = static_cast<float>(static_cast<double>(temperature) * temperature * total);
  }
  return ASSAY_OK;
}
