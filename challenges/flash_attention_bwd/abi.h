/* flash_attention_bwd: gradients of softmax attention without an Nq x Nk matrix. Plain C;
 * conventions as in assay/abi.h, parameters as in assay/attention.h.
 *
 * With s_ij = scale q_i.k_j over the visible keys (as in fa_params), P_ij = e^(s_ij - lse_i):
 *   delta_i = sum_d do_id o_id        dP_ij = do_i.v_j        dS_ij = P_ij (dP_ij - delta_i)
 *   dq_i = scale sum_j dS_ij k_j      dk_j = scale sum_i dS_ij q_i      dv_j = sum_i P_ij do_i
 * where dk_j and dv_j also sum over the query heads h with h / (Hq / Hkv) equal to the key head.
 * On a device: all arrays, those of fa_extra and fa_varlen and the bias too, are device memory; the
 * structs are host memory. */
#ifndef FLASH_ATTENTION_BWD_ABI_H
#define FLASH_ATTENTION_BWD_ABI_H

#include "assay/attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* q, dq [B, Hq, Nq, D] by sq; k, dk [B, Hkv, Nk, D] by sk; v, dv [B, Hkv, Nk, Dv] by sv; o, dout
 * [B, Hq, Nq, Dv] by so; all in p->dtype. lse [B, Hq, Nq] fp32, contiguous: the natural log-sum-exp
 * of the forward pass. o and lse are exact up to one rounding, so that s_ij - lse_i may be slightly
 * above 0. Outputs are overwritten; what lies between their rows must survive. A query without keys
 * has lse = -inf, o = 0, and dq = 0; a key that nobody sees has dk = dv = 0. A NaN in row i of dout,
 * if that row sees a key, spoils dq_i, dk_j of the keys that i sees and dv_j in the NaN's columns,
 * nothing else; what is masked never matters, even NaN or Inf. fp32 with D = Dv in {32, 64, 128}
 * and no window is required; bf16, f16, other D, Dv != D and a window are optional. A negative
 * size, Hq % Hkv != 0 or NULL for a non-empty array is ASSAY_EINVAL. */
int fa_backward(assay_ctx*, const fa_params*, const void* dout, const void* q, const void* k,
                const void* v, const void* o, const float* lse, void* dq, void* dk, void* dv);

/* Optional. The same with extras (e NULL: none) and dlse [B, Hq, Nq] (or NULL), the gradient that
 * flows into lse, so that dS_ij = P_ij (dP_ij - delta_i + dlse_i). Any of them may earn
 * ASSAY_ENOTSUP. */
int fa_backward_extra(assay_ctx*, const fa_params*, const fa_extra* e, const float* dlse,
                      const void* dout, const void* q, const void* k, const void* v, const void* o,
                      const float* lse, void* dq, void* dk, void* dv);

/* Optional. The same over packed sequences, see fa_varlen: position n of head h of q is at n * sq.n
 * + h * sq.h, likewise the other arrays; lse [Hq, total_q]. A negative size or total, or NULL for
 * the lengths, is ASSAY_EINVAL. */
int fa_backward_varlen(assay_ctx*, const fa_params*, const fa_varlen*, const void* dout,
                       const void* q, const void* k, const void* v, const void* o, const float* lse,
                       void* dq, void* dk, void* dv);

/* Optional. The same with s_ij = scale q_i.k_j + bias_ij, see fa_bias, and the bias's gradient:
 * dbias, fp32 and laid out as the bias, overwritten, is dS_ij, 0 for masked pairs, summed over the
 * dimensions in which one value serves all. dbias may be NULL: then it is not wanted. A value of
 * the bias that only masked pairs read never matters, even NaN. */
int fa_backward_bias(assay_ctx*, const fa_params*, const fa_bias*, const float* bias,
                     const void* dout, const void* q, const void* k, const void* v, const void* o,
                     const float* lse, void* dq, void* dk, void* dv, float* dbias);

/* Optional. The forward pass: o by so, and lse, as fa_backward wants them. Where it is there, it is
 * also called before fa_backward, which then gets its o and lse: both are judged, and so are the
 * gradients. */
int fa_forward(assay_ctx*, const fa_params*, const void* q, const void* k, const void* v, void* o,
               float* lse);

#ifdef __cplusplus
}
#endif

#endif
