/* flash_attention_fwd: softmax attention, forward pass, without an Nq x Nk matrix. Plain C;
 * conventions as in assay/abi.h, parameters as in assay/attention.h.
 *
 * s_ij = scale q_i.k_j. Key j < Nk is visible to query i if (not causal, or j <= i + Nk - Nq) and
 * (window <= 0, or j > i + Nk - Nq - window). lse_i = log of the sum of e^s_ij over visible j
 * (natural logarithm), o_i = sum of e^(s_ij - lse_i) v_j. A query that sees no key has o = 0 and
 * lse = -inf. On a device: all arrays, those of fa_extra and fa_varlen, bias and scales too, are
 * device memory; the structs are host memory. */
#ifndef FLASH_ATTENTION_FWD_ABI_H
#define FLASH_ATTENTION_FWD_ABI_H

#include "assay/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* q [B, Hq, Nq, D], k [B, Hkv, Nk, D], v [B, Hkv, Nk, Dv], o [B, Hq, Nq, Dv] in p->dtype, through
 * the strides sq, sk, sv and so; lse [B, Hq, Nq] fp32, contiguous, or NULL. Query head h reads key
 * head h / (Hq / Hkv). What lies between the rows of o must survive. A NaN in row i of q spoils row
 * i of o and lse if that row sees a key, a NaN in row j of k the rows of o and lse that see j, one
 * in row j of v those of o, and nothing else: what is masked never matters, even NaN or Inf. fp32
 * with D = Dv in {32, 64, 128} and no window is required; bf16, f16, other D, Dv != D and a window
 * are optional. A negative size, Hq % Hkv != 0 or NULL for a non-empty array is ASSAY_EINVAL. */
int fa_forward(assay_ctx*, const fa_params*, const void* q, const void* k, const void* v, void* o,
               float* lse);

/* Optional. The same with extras, any of which may earn ASSAY_ENOTSUP. e NULL: none. */
int fa_forward_extra(assay_ctx*, const fa_params*, const fa_extra* e, const void* q, const void* k,
                     const void* v, void* o, float* lse);

/* Optional. The same over packed sequences, see fa_varlen: position n of head h of q is at n * sq.n
 * + h * sq.h, likewise k, v and o; lse [Hq, total_q]. A negative size or total, or NULL for the
 * lengths, is ASSAY_EINVAL. */
int fa_forward_varlen(assay_ctx*, const fa_params*, const fa_varlen*, const void* q, const void* k,
                      const void* v, void* o, float* lse);

/* Optional. The same with s_ij = scale q_i.k_j + bias_ij, see fa_bias. A value of the bias that
 * only masked pairs read never matters, even NaN. A size that is neither 1 nor that of fa_params is
 * ASSAY_EINVAL. */
int fa_forward_bias(assay_ctx*, const fa_params*, const fa_bias*, const float* bias, const void* q,
                    const void* k, const void* v, void* o, float* lse);

/* Optional. q, k and v are fp8 (e4m3: 4 bits of exponent with bias 7, 3 of fraction, 0x7f and 0xff
 * are NaN, no infinity); a value is its byte's times scales[0] for q, scales[1] for k, scales[2]
 * for v. o is p->dtype, ASSAY_F32 or ASSAY_BF16. Weights may be rounded to e4m3 for the product
 * with v if they are scaled to use its range, as may sums to 14 bits. */
int fa_forward_fp8(assay_ctx*, const fa_params*, const float* scales, const uint8_t* q,
                   const uint8_t* k, const uint8_t* v, void* o, float* lse);

#ifdef __cplusplus
}
#endif

#endif
