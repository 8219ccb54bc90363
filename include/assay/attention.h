/* Attention parameters shared by the challenges that compute attention. C11 and C++20. */
#ifndef ASSAY_ATTENTION_H
#define ASSAY_ATTENTION_H

#include "assay/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Strides in elements for batch, head and position; the last dimension is contiguous. */
typedef struct {
  int64_t b, h, n;
} assay_stride;

typedef struct {
  uint32_t size;                      /* sizeof(fa_params) */
  int32_t dtype;                      /* ASSAY_F32, ASSAY_BF16 or ASSAY_F16 */
  int64_t B, Hq, Hkv, Nq, Nk, D, Dv;  /* Hq % Hkv == 0, else ASSAY_EINVAL */
  assay_stride sq, sk, sv, so;
  float scale;                        /* multiplies q.k; any finite value, 0 and negative included */
  int32_t causal;                     /* bottom-right aligned: key j visible if j <= i + Nk - Nq */
  int64_t window;                     /* keys visible before the diagonal, -1: no window */
  int32_t math;                       /* 0 strict fp32, 1 TF32 allowed */
} fa_params;

#ifdef __cplusplus
}
#endif

#endif
