/* ternary_training: train a small transformer whose weights are -s, 0 or +s, and pack it. Plain C;
 * conventions as in assay/abi.h.
 *
 * A block holds 128 weights of one row, consecutive columns, in 34 bytes: bytes 0-1 the scale s as
 * IEEE binary16, little-endian; then the codes, 2 bits each: code j stands in byte 2 + j / 4, bits
 * 2 (j % 4) and 2 (j % 4) + 1, and means the weight (code - 1) s. Code 3 is illegal; s is finite
 * and not negative. A matrix [rows, cols] is its rows' blocks one after the other.
 *
 * A blob is all matrices, then all norms as fp32, without header or padding:
 *   embedding [V, d]; if !tied: head [V, d]; for each layer: q [Hq hd, d], k [Hkv hd, d],
 *   v [Hkv hd, d], o [d, Hq hd], gate [ff, d], up [ff, d], down [d, ff];
 *   for each layer: attention norm [d], query norm [hd], key norm [hd], feed-forward norm [d];
 *   final norm [d].
 *
 * The model that a blob stands for, per document, position p counted from 0:
 *   rms(x, w) = x / sqrt(mean(x^2) + eps) * w
 *   x = embedding[token]; for each layer:
 *     h = rms(x, attention norm); q, k, v = the matrices times h, split into heads of hd
 *     q, k = rope(rms(q, query norm)), rope(rms(k, key norm)), each head on its own
 *     rope turns the pair (i, i + hd/2) by the angle p theta^(-2i/hd): (a cos - b sin, a sin + b
 * cos) query head j uses key and value head j / (Hq / Hkv) (integer division); causal softmax of
 *     q.k / sqrt(hd); x += o times the heads' results
 *     h = rms(x, feed-forward norm); x += down (silu(gate h) * up h), silu(z) = z / (1 + exp(-z))
 *   logits = head times rms(x, final norm); the head is the embedding if tied
 * Logits at position p predict the token at p + 1.
 *
 * On a device: blobs, blocks, logits and all matrices are device memory; docs, tt_config and tt_budget are host
 * memory. */
#ifndef TERNARY_TRAINING_ABI_H
#define TERNARY_TRAINING_ABI_H

#include "assay/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint32_t size; /* sizeof(tt_config) */
  int32_t V, d, L, Hq, Hkv, hd, ff, T, tied;
  float theta, eps;
} tt_config;
/* Valid: every size positive; d, Hq hd and ff multiples of 128; hd even; Hq a multiple of Hkv; V at
 * most 65536; T at least 2; tied 0 or 1. tied == 0 is optional. */

typedef struct {
  uint32_t size;      /* sizeof(tt_budget) */
  double seconds;     /* wall clock of tt_train; overrunning it by more than 5 % fails */
  int64_t max_tokens; /* tokens that training may look at; seeing a document again counts again */
  uint64_t seed;      /* of everything random in tt_train */
} tt_budget;

/* 0 for an invalid configuration. */
size_t tt_blob_bytes(const tt_config*);

/* docs [n_docs, T]: token ids below V, each document starting with its first token and full to the
 * end. blob [tt_blob_bytes] must hold a legal model on return, for n_docs == 0 and tiny budgets
 * too. */
int tt_train(assay_ctx*, const tt_config*, const uint16_t* docs, int64_t n_docs, const tt_budget*,
             void* blob);

/* cols a multiple of 128, else ASSAY_EINVAL; zero dimensions are legal. w [rows, cols]; blocks
 * [rows, cols / 128, 34]. Per block: m = the mean of |w| in fp64; s = m rounded to the nearest
 * binary16 (ties to even, once, straight from fp64), at most 65504; the code is 2 or 0 where |w| >
 * s / 2 strictly, by the sign of w, else 1; where s == 0 every code is 1. */
int tt_quantize(assay_ctx*, int64_t rows, int64_t cols, const float* w, uint8_t* blocks);

/* Exactly what the blocks say. Legal blocks only. */
int tt_dequantize(assay_ctx*, int64_t rows, int64_t cols, const uint8_t* blocks, float* w);

/* A linear layer and its gradients, W being what the blocks [rows, cols] say: y [M, rows] = x W^T,
 * dx [M, cols] = dy W, dw_latent [rows, cols] = dy^T x (straight through: the rounding of the
 * latent weights counts as the identity, the scale as a constant). x [M, cols], dy [M, rows]. */
int tt_linear(assay_ctx*, int64_t M, int64_t rows, int64_t cols, const float* x,
              const uint8_t* blocks, const float* dy, float* y, float* dx, float* dw_latent);

/* The model's logits [n_docs, T, V] for documents of T tokens, from the packed weights.
 */
int tt_logits(assay_ctx*, const tt_config*, const void* blob, const uint16_t* docs, int64_t n_docs,
              float* logits);

#ifdef __cplusplus
}
#endif

#endif
