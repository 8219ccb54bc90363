// Tensor maps, and how programs find the driver's functions.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>

#include "sim/runtime/api.h"
#include "sim/runtime/driver_api.h"
#include "sim/runtime/runtime.h"

namespace assay::sim::cuda {
namespace {

struct EntryPoint {
  std::string_view name;
  unsigned version;  // of CUDA, in which the driver got it: 12000 for 12.0
  void* function;
};

const EntryPoint kEntryPoints[] = {
    {"cuTensorMapEncodeTiled", 12000, reinterpret_cast<void*>(&cuTensorMapEncodeTiled)},
};

constexpr unsigned kAnyVersion = ~0u;

cudaError_t find(const char* name, void** function, unsigned version,
                 cudaDriverEntryPointQueryResult* status) {
  return call([&](Runtime& runtime) {
    if (name == nullptr || function == nullptr) return cudaErrorInvalidValue;
    const auto* const found = std::ranges::find(kEntryPoints, name, &EntryPoint::name);
    if (found == std::end(kEntryPoints)) return runtime.unsupported(name);
    const bool exists = version >= found->version;
    *function = exists ? found->function : nullptr;
    if (status != nullptr) {
      *status = exists ? cudaDriverEntryPointSuccess : cudaDriverEntryPointVersionNotSufficent;
    }
    return cudaSuccess;
  });
}

}  // namespace

CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType element, cuuint32_t rank,
                                void* address, const cuuint64_t* size,
                                const cuuint64_t* stride_bytes, const cuuint32_t* box,
                                const cuuint32_t* step, CUtensorMapInterleave interleave,
                                CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2_promotion,
                                CUtensorMapFloatOOBfill fill) {
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  call([&](Runtime& runtime) {
    TensorMapRequest request{.element = element,
                             .rank = rank,
                             .interleave = interleave,
                             .swizzle = swizzle,
                             .l2_promotion = l2_promotion,
                             .fill = fill,
                             .address = reinterpret_cast<std::uint64_t>(address)};
    if (map == nullptr || !request.take_arrays(size, stride_bytes, box, step)) return cudaSuccess;
    const TensorMapReply reply = runtime.device().tensor_map(request);
    if (reply.status == TensorMapReply::Status::unsupported) {
      result = CUDA_ERROR_NOT_SUPPORTED;
      runtime.unsupported("cuTensorMapEncodeTiled: a tensor map " + reply.message);
    } else if (reply.status == TensorMapReply::Status::ok) {
      result = CUDA_SUCCESS;
      std::memcpy(map, reply.map.data(), reply.map.size());
    }
    return cudaSuccess;
  });
  return result;
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                    cudaDriverEntryPointQueryResult* status) {
  return find(symbol, function, kAnyVersion, status);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* status) {
  return find(symbol, function, version, status);
}

ASSAY_CUDA_PER_THREAD_ALIAS(cudaGetDriverEntryPoint, _ptsz);
ASSAY_CUDA_PER_THREAD_ALIAS(cudaGetDriverEntryPointByVersion, _ptsz);

}  // namespace assay::sim::cuda
