/* layer_norm_backward: gradients of layer normalisation. Plain C; conventions as in assay/abi.h.
 *
 * Forward, per row of D elements: mu = mean(x), var = mean((x - mu)^2) (biased),
 * rstd = 1 / sqrt(var + eps), xhat = (x - mu) rstd, y = xhat gamma + beta.
 * Backward, g = dy gamma: dx = rstd (g - mean(g) - xhat mean(g xhat)),
 * dgamma = sum over rows of dy xhat, dbeta = sum over rows of dy.
 * On a device: every array and the cache, which is aligned to 256 bytes, are device memory;
 * ln_params is host memory. */
#ifndef LAYER_NORM_BACKWARD_ABI_H
#define LAYER_NORM_BACKWARD_ABI_H

#include "assay/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  uint32_t size;   /* sizeof(ln_params) */
  int32_t dtype;   /* of x, y, dy, dx, dres: ASSAY_F32, or ASSAY_BF16 (optional) */
  int64_t rows, D; /* >= 0 */
  float eps;       /* >= 0; a row with var + eps == 0 has unspecified dx */
} ln_params;

/* Bytes that forward leaves for backward. The buffer is the caller's, aligned to 64 bytes; 8 bytes a
 * row earn full credit, 0 is legal (recompute), more than 16 a row earn nothing. At most 64 a row +
 * 4096. */
size_t ln_cache_bytes(const ln_params*);

/* x, y [rows, D]; gamma, beta [D] fp32; cache as above. */
int ln_forward(assay_ctx*, const ln_params*, const void* x, const float* gamma, const float* beta,
               void* y, void* cache);

/* dy, x, dx [rows, D]; gamma, dgamma, dbeta [D] fp32. cache is the forward's for this x; it may be
 * used again and other forwards may have run since. Outputs are overwritten. A row of x or dy with
 * NaN makes its own dx NaN (and dgamma, dbeta what IEEE sums give), no other row's. rows == 0 gives
 * dgamma = dbeta = 0. dx, dgamma or dbeta may be NULL, which is optional: it is not wanted. */
int ln_backward(assay_ctx*, const ln_params*, const void* dy, const void* x, const float* gamma,
                const void* cache, void* dx, float* dgamma, float* dbeta);

/* Optional. The same, with dres [rows, D] added to dx: the gradient that bypasses the norm. */
int ln_backward_residual(assay_ctx*, const ln_params*, const void* dy, const void* x,
                         const float* gamma, const void* cache, const void* dres, void* dx,
                         float* dgamma, float* dbeta);

/* Optional. RMSNorm, y = x / sqrt(mean(x^2) + eps) gamma, without cache: with q = that reciprocal
 * root, dx = q (g - x q^2 mean(g x)), dgamma = sum over rows of dy x q. */
int rms_backward(assay_ctx*, const ln_params*, const void* dy, const void* x, const float* gamma,
                 void* dx, float* dgamma);

#ifdef __cplusplus
}
#endif

#endif
