/* The C ABI that every challenge builds on. A challenge's abi.h includes this header; a submission
 * includes only its challenge's abi.h and the standard library. Compiles as C11 and as C++20.
 *
 * Conventions: structs by pointer, sizes int64_t, enums int32_t; each parameter struct starts with
 * `uint32_t size` (= sizeof). Functions return an ASSAY_* code and let no exception cross the
 * boundary. Inputs are read-only. A zero dimension is legal (ASSAY_OK). A negative dimension, or
 * NULL with a non-zero size, is ASSAY_EINVAL and leaves every output untouched. A call that the
 * context refuses memory returns ASSAY_ENOMEM, leaves every output untouched and keeps nothing. An
 * optional feature that is not implemented returns ASSAY_ENOTSUP. */
#ifndef ASSAY_ABI_H
#define ASSAY_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
  ASSAY_OK = 0,
  ASSAY_EINVAL = 1,
  ASSAY_ENOTSUP = 2,
  ASSAY_ENOMEM = 3,
  ASSAY_ESTATE = 4,
  ASSAY_ECAP = 5,
  ASSAY_EINTERNAL = 6
};

enum { ASSAY_F32 = 0, ASSAY_BF16 = 1, ASSAY_F16 = 2 };

typedef struct assay_ctx {
  uint32_t abi;     /* 1 */
  int32_t device;   /* -1: every pointer is host memory; else a CUDA ordinal, data is on device */
  void* stream;     /* cudaStream_t, or NULL on host */
  int32_t nthreads; /* most threads the call may keep busy, the caller's included */
  /* Scratch. align is a power of two; space 0 is host, 1 is device. NULL when out of memory, or
   * when align is no power of two. The peak of live bytes is a graded resource. Blocks must be
   * freed before the call returns, unless the challenge has handles that own them. Contents start
   * undefined. Thread-safe. */
  void* (*alloc)(struct assay_ctx*, size_t bytes, size_t align, int space);
  void (*free)(struct assay_ctx*, void*);
  void* priv;
} assay_ctx;

#ifdef __cplusplus
}
#endif

#endif
