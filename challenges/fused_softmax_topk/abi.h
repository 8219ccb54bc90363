/* fused_softmax_topk: the K largest probabilities of each row's softmax, without materialising it.
 * Plain C; includes and conventions as in assay/abi.h.
 * On a device: every array is device memory, stk_params is host memory. */
#ifndef FUSED_SOFTMAX_TOPK_ABI_H
#define FUSED_SOFTMAX_TOPK_ABI_H

#include "assay/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint32_t size;     /* sizeof(stk_params) */
  int32_t dtype;     /* ASSAY_F32, or ASSAY_BF16 (optional) */
  int64_t rows, V;   /* rows >= 0, V >= 0 */
  int64_t ld;        /* elements from row to row, >= V; columns V..ld-1 must never be used */
  int32_t K;         /* >= 0; up to 1024 is required, more is optional */
  float temperature; /* > 0 and finite */
} stk_params;

/* logits [rows, ld]; idx [rows, K], prob [rows, K], lse [rows] or NULL. Offsets are 64-bit: r * ld
 * may exceed 2^32.
 *
 * z = x / temperature; lse = log sum_{j<V} exp(z_j); prob = exp(z - lse) over the full row. Slots
 * are ordered by x descending, ties by lower index (-0 equals +0). Slots from V on hold -1 and 0.
 * -inf is a legal logit of probability 0; a row of only -inf has lse = -inf, idx 0, 1, ..., prob 0.
 * A row with NaN or +inf has idx -1 and prob NaN in all K slots, and lse NaN. K = 0 computes only
 * lse. ASSAY_EINVAL: negative sizes, ld < V, temperature not > 0, NULL for non-empty arrays. */
int softmax_topk(assay_ctx*, const stk_params*, const void* logits, int32_t* idx, float* prob,
                 float* lse);

/* Optional. The same with logarithms of probabilities (z - lse; -inf for masked and unused slots).
 * */
int log_softmax_topk(assay_ctx*, const stk_params*, const void* logits, int32_t* idx,
                     float* logprob, float* lse);

/* Optional. count[r] = how many of the K slots the nucleus keeps: the fewest leading slots whose
 * probabilities sum to at least top_p (0 < top_p <= 1), at least 1, at most min(K, V). 0 for rows
 * with NaN or +inf, for rows of only -inf, and where K or V is 0. The other outputs as in
 * softmax_topk. */
int softmax_topk_top_p(assay_ctx*, const stk_params*, const void* logits, float top_p, int32_t* idx,
                       float* prob, float* lse, int32_t* count);

#ifdef __cplusplus
}
#endif

#endif
