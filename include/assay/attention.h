/* Attention parameters shared by the challenges that compute attention. C11 and C++20. */
#ifndef ASSAY_ATTENTION_H
#define ASSAY_ATTENTION_H

#include "assay/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Strides in elements for batch, head and position; the last dimension is contiguous. Offsets are
 * 64-bit: they may exceed 2^32. */
typedef struct {
  int64_t b, h, n;
} assay_stride;

typedef struct {
  uint32_t size;                     /* sizeof(fa_params) */
  int32_t dtype;                     /* ASSAY_F32, ASSAY_BF16 or ASSAY_F16 */
  int64_t B, Hq, Hkv, Nq, Nk, D, Dv; /* Hq % Hkv == 0, else ASSAY_EINVAL */
  assay_stride sq, sk, sv, so;
  float scale;    /* multiplies q.k; any finite value, 0 and negative included */
  int32_t causal; /* bottom-right aligned: key j visible if j <= i + Nk - Nq */
  int64_t window; /* > 0: and only if j > i + Nk - Nq - window; else no window */
  int32_t math;   /* 0 strict fp32, 1 TF32 allowed */
} fa_params;

/* Values are finite, but for a NaN where what becomes of it is said, and NaN and Inf in what is
 * masked. Every visible score is finite, or NaN by such a value. */

/* Optional features. A NULL pointer or 0 switches one off. */
typedef struct {
  uint32_t size;         /* sizeof(fa_extra) */
  float softcap;         /* > 0: a score s = scale q.k becomes softcap tanh(s / softcap) */
  const float* alibi;    /* [Hq] slopes, then s -= slope |i + L - Nq - j|, L keys of the item */
  const float* sink;     /* [Hq] e^sink joins each row's denominator, and so lse; it has no value */
  const int64_t* kv_len; /* [B] keys of each item, <= Nk; takes the place of Nk in visibility */
} fa_extra;

/* Sequences of different lengths, packed one after the other without gaps. Sequence b has the
 * positions cu_q[b] .. cu_q[b + 1] - 1 of q, o and their gradients, and cu_k[b] .. cu_k[b + 1] - 1
 * of k, v and theirs; it is attention of its own, with its own Nq and Nk in visibility. In
 * fa_params, B is the number of sequences, Nq and Nk are the largest lengths, and the strides b are
 * 0. */
typedef struct {
  uint32_t size;            /* sizeof(fa_varlen) */
  int64_t total_q, total_k; /* cu_q[B], cu_k[B] */
  const int64_t* cu_q; /* [B + 1] ascending from 0, as cu_k; a sequence may have no queries, no */
  const int64_t* cu_k; /* keys, or neither */
} fa_varlen;

/* A bias that is added to the scores scale q.k: fp32, contiguous [B, Hq, Nq, Nk], where any of the
 * four may be 1 instead: then one value serves the whole dimension. */
typedef struct {
  uint32_t size;         /* sizeof(fa_bias) */
  int64_t B, Hq, Nq, Nk; /* each that of fa_params, or 1 */
} fa_bias;

#ifdef __cplusplus
}
#endif

#endif
