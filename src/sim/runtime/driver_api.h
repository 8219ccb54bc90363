// The functions of CUDA's driver API that the runtime offers, because nothing in the runtime API
// does what they do. Programs ask cudaGetDriverEntryPoint for them, or link them. NVIDIA's "CUDA
// Driver API" 13.0 documents them. As in api.h the types may be NVIDIA's, from <cuda.h>.
#pragma once

#ifndef ASSAY_SIM_NVIDIA_TYPES
#include "sim/runtime/abi.h"
namespace assay::sim::cuda {

enum CUresult : std::uint32_t {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_NOT_SUPPORTED = 801,
};
struct CUtensorMap {
  std::uint64_t opaque[16];
};
// Their enumerators are those of sim/tensor_map.h; which of them are known is said there.
enum CUtensorMapDataType : std::uint32_t {};
enum CUtensorMapInterleave : std::uint32_t {};
enum CUtensorMapSwizzle : std::uint32_t {};
enum CUtensorMapL2promotion : std::uint32_t {};
enum CUtensorMapFloatOOBfill : std::uint32_t {};
using cuuint32_t = std::uint32_t;
using cuuint64_t = std::uint64_t;
#endif

extern "C" {

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType element, cuuint32_t rank,
                                void* address, const cuuint64_t* size,
                                const cuuint64_t* stride_bytes, const cuuint32_t* box,
                                const cuuint32_t* step, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2_promotion,
                                CUtensorMapFloatOOBfill fill);

}  // extern "C"

#ifndef ASSAY_SIM_NVIDIA_TYPES
}  // namespace assay::sim::cuda
#endif
