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
 * On a device: blobs, blocks of either kind, logits, losses, counts, states and all matrices are
 * device memory; docs, tokens, generated tokens and the structs are host memory. */
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
  int64_t max_tokens; /* that gradients are computed for; a document seen again counts again */
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

/* Exactly what the blocks say: (code - 1) s, which is -0.0 for code 0 of a scale 0. Legal blocks
 * only. */
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

/* --- Optional. A submission that lacks one of these loses its item of completeness only. --- */

/* Dense blocks: 128 weights of a row in 28 bytes, five codes (0, 1, 2 as above) a byte, and the
 * codes do not stand in order:
 *   byte m of bytes 0-15 holds those of the weights m, 16 + m, 32 + m, 48 + m, 64 + m;
 *   byte 16 + m of bytes 16-23 those of 80 + m, 88 + m, 96 + m, 104 + m, 112 + m;
 *   byte 24 + m of bytes 24-25 those of 120 + m, 122 + m, 124 + m, 126 + m and, fifth, code 0;
 *   bytes 26-27 hold the scale, binary16, little-endian.
 * A byte's codes are the digits of a number N in base 3, the first one the highest (81 times); the
 * byte is 256 N / 243 rounded up, so that digit n (from 0) is floor(3 (3^n byte mod 256) / 256).
 * blocks [rows, cols / 128, 34], dense [rows, cols / 128, 28]; cols a multiple of 128, else
 * ASSAY_EINVAL. Exact both ways, scales bit by bit. Legal blocks only. */
int tt_pack_dense(assay_ctx*, int64_t rows, int64_t cols, const uint8_t* blocks, uint8_t* dense);
int tt_unpack_dense(assay_ctx*, int64_t rows, int64_t cols, const uint8_t* dense, uint8_t* blocks);

/* tt_linear with activations and their gradients in bfloat16 (x, dy, y, dx); sums in fp32, rounded
 * once to the nearest bfloat16. dw_latent stays fp32. */
int tt_linear_bf16(assay_ctx*, int64_t M, int64_t rows, int64_t cols, const uint16_t* x,
                   const uint8_t* blocks, const uint16_t* dy, uint16_t* y, uint16_t* dx,
                   float* dw_latent);

typedef struct {
  uint32_t size; /* sizeof(tt_generation) */
  int64_t n_docs;
  int64_t position; /* tokens of each document that the state holds; at 0 it may hold anything */
  int64_t n_new;    /* given tokens of each document that follow them; at least 1 */
  int64_t steps;    /* tokens of each document to generate after those */
} tt_generation;

/* Greedy generation: each token is the one with the largest logit at the position before it.
 * tokens [n_docs, n_new], generated [n_docs, steps]. state [n_docs, 2 L T Hkv hd] fp32: room for a
 * key and a value of every position and layer; what stands where is up to you. After a call it
 * holds position + n_new + steps tokens (the last one generated too), and the next call may go on
 * from there with other given tokens; the earlier tokens are not passed again. More than T tokens
 * in all or n_new < 1: ASSAY_EINVAL. */
int tt_generate(assay_ctx*, const tt_config*, const void* blob, const tt_generation*,
                const uint16_t* tokens, float* state, uint16_t* generated);

/* A training that can be interrupted. state [16 n + 65536 bytes, n the number of all weights,
 * matrices and norms]; what stands in it is up to you. resume == 0 begins a training and ignores
 * what the state holds; resume == 1 goes on with the state that an earlier call with the same
 * configuration, documents and budget left, perhaps at another address, perhaps after other
 * trainings. Steps are taken as long as they use no more than `until` tokens since the training
 * began; more than max_tokens means max_tokens. Then the state is written, and the model so far to
 * blob unless that is NULL. A training up to max_tokens in several calls must give the same bytes of
 * the blob as in one: learning rates go by tokens alone. budget->seconds holds for each call. */
int tt_train_part(assay_ctx*, const tt_config*, const uint16_t* docs, int64_t n_docs,
                  const tt_budget*, int32_t resume, int64_t until, void* state, void* blob);

/* Counts of a blob's matrices and of what changed since an earlier blob, before (NULL: nothing
 * changed). counts [matrices, 7], matrices in the blob's order; of each matrix [rows, cols]:
 * weights below 0, equal to 0, above 0; rows of zeros alone; columns of zeros alone; weights whose
 * sign (-, 0, +) is another than before; weights whose sign was reversed (- to + or + to -). It is
 * the weights that count: where a scale is 0, all of them are 0. */
int tt_blob_statistics(assay_ctx*, const tt_config*, const void* blob, const void* before,
                       int64_t* counts);

/* The loss of distillation and its gradient. For each row, with p = softmax(teacher / temperature)
 * and q = softmax(student / temperature): loss [M] = temperature^2 sum_v p_v (log p_v - log q_v),
 * gradient [M, V] that of the row's loss by the student's logits. teacher, student [M, V];
 * temperature positive and finite, else ASSAY_EINVAL. V == 0: the losses are 0. */
int tt_distill_loss(assay_ctx*, int64_t M, int64_t V, float temperature, const float* teacher,
                    const float* student, float* loss, float* gradient);

#ifdef __cplusplus
}
#endif

#endif
