// fails: causal_64 noncausal
// The weights are kept in bf16, of which they have eight bits, as for tensor cores.
#include <cstdint>

#include "abi.h"

__device__ float in_bf16(float x) { return __uint_as_float(__float_as_uint(x) & 0xffff0000u); }

#define expf(x) in_bf16((expf)(x))
#include "naive.cu"
