/* vector_sum: the sum of a vector. Plain C; conventions as in assay/abi.h. */
#ifndef VECTOR_SUM_ABI_H
#define VECTOR_SUM_ABI_H

#include "assay/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint32_t size; /* sizeof(vs_params) */
  int64_t n;     /* >= 0 */
} vs_params;

/* x [n] -> sum [1]; 0 for n == 0. */
int vector_sum(assay_ctx*, const vs_params*, const float* x, float* sum);

#ifdef __cplusplus
}
#endif

#endif
