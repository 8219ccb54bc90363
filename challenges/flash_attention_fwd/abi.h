/* flash_attention_fwd: softmax attention, forward pass, without an Nq x Nk matrix. Plain C; conventions
 * as in assay/abi.h, parameters as in assay/attention.h.
 *
 * s_ij = scale q_i.k_j. Key j < Nk is visible to query i if (not causal, or j <= i + Nk - Nq) and (window
 * <= 0, or j > i + Nk - Nq - window). lse_i = log of the sum of e^s_ij over visible j (natural logarithm),
 * o_i = sum of e^(s_ij - lse_i) v_j. A query that sees no key has o = 0 and lse = -inf.
 * On a device: all arrays, those of fa_extra too, are device memory; params and fa_extra are host memory. */
#ifndef FLASH_ATTENTION_FWD_ABI_H
#define FLASH_ATTENTION_FWD_ABI_H

#include "assay/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* q [B, Hq, Nq, D], k [B, Hkv, Nk, D], v [B, Hkv, Nk, Dv], o [B, Hq, Nq, Dv] in p->dtype, through the strides sq,
 * sk, sv and so; lse [B, Hq, Nq] fp32, contiguous, or NULL. Query head h reads key head h / (Hq / Hkv).
 * What lies between the rows of o must survive. A NaN in row i of q spoils row i of o and lse, a NaN in
 * row j of k or v the rows that see j, and nothing else: what is masked never matters, even NaN or Inf.
 * fp32 with D = Dv in {32, 64, 128} and no window is required; bf16, f16, other D, Dv != D and a window are
 * optional. A negative size, Hq % Hkv != 0 or NULL for a non-empty array is ASSAY_EINVAL. */
int fa_forward(assay_ctx*, const fa_params*, const void* q, const void* k, const void* v, void* o,
               float* lse);

/* Optional. The same with extras, any of which may earn ASSAY_ENOTSUP. e NULL: none. */
int fa_forward_extra(assay_ctx*, const fa_params*, const fa_extra* e, const void* q, const void* k,
                     const void* v, void* o, float* lse);

#ifdef __cplusplus
}
#endif

#endif
