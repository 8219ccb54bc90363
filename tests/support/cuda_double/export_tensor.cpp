// Tensor maps.
#include <cstring>

#include "sim/tensor_map.h"
#include "support/cuda_double/call.h"

namespace assay::gpu {

CUresult cuTensorMapEncodeTiled(void* map, int element, std::uint32_t rank, void* address,
                                const std::uint64_t* size, const std::uint64_t* stride_bytes,
                                const std::uint32_t* box, const std::uint32_t* step, int interleave,
                                int swizzle, int l2_promotion, int fill) {
  return call(__func__, Needs::context, [&](SimulatedGpu&) {
    sim::TensorMapRequest r{.element = static_cast<std::uint32_t>(element),
                            .rank = rank,
                            .interleave = static_cast<std::uint32_t>(interleave),
                            .swizzle = static_cast<std::uint32_t>(swizzle),
                            .l2_promotion = static_cast<std::uint32_t>(l2_promotion),
                            .fill = static_cast<std::uint32_t>(fill),
                            .address = reinterpret_cast<std::uint64_t>(address)};
    if (map == nullptr || !r.take_arrays(size, stride_bytes, box, step)) return kInvalidValue;
    const sim::TensorMapReply reply = sim::encode(r);
    if (reply.status == sim::TensorMapReply::Status::invalid) return kInvalidValue;
    if (reply.status == sim::TensorMapReply::Status::unsupported) return kNotSupported;
    std::memcpy(map, reply.map.data(), reply.map.size());
    return kSuccess;
  });
}

}  // namespace assay::gpu
