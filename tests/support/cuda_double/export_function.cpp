// A kernel's attributes: reading them, and setting those that may be set.
#include <algorithm>
#include <optional>

#include "support/cuda_double/call.h"

namespace assay::gpu {
namespace {

constexpr std::uint32_t kMaxRegisters = 255;  // per thread

std::optional<std::uint64_t> attribute_of(const CUfunc_st& function, const sim::KernelInfo& info,
                                          int attribute) {
  switch (attribute) {
    case kFunctionMaxThreads: return info.max_threads;
    case kFunctionSharedBytes: return info.static_shared_bytes;
    case kFunctionLocalBytes: return info.local_bytes;
    case kFunctionRegisters: return std::min(info.registers, kMaxRegisters);
    case kFunctionMaxDynamicShared: return function.dynamic_shared_limit(info);
    case kFunctionRequiredClusterWidth: return info.required_cluster.x;
    case kFunctionRequiredClusterHeight: return info.required_cluster.y;
    case kFunctionRequiredClusterDepth: return info.required_cluster.z;
    case kFunctionLargeClusters: return function.large_clusters ? 1 : 0;
    default: return std::nullopt;
  }
}

}  // namespace

CUresult cuFuncGetAttribute(int* value, int attribute, CUfunction function) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (value == nullptr) return kInvalidValue;
    if (!gpu.functions.has(function)) return kInvalidHandle;
    const auto found = attribute_of(*function, gpu.device().info(function->id), attribute);
    if (!found) return kInvalidValue;
    *value = static_cast<int>(*found);
    return kSuccess;
  });
}

CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (!gpu.functions.has(function)) return kInvalidHandle;
    if (value < 0) return kInvalidValue;
    if (attribute == kFunctionLargeClusters) {
      function->large_clusters = value != 0;
      return kSuccess;
    }
    if (attribute != kFunctionMaxDynamicShared) return kInvalidValue;
    const std::uint64_t bytes = static_cast<std::uint64_t>(value);
    const sim::KernelInfo& info = gpu.device().info(function->id);
    if (bytes + info.static_shared_bytes > sim::kMaxSharedOptin) return kInvalidValue;
    function->max_dynamic_shared = bytes;
    return kSuccess;
  });
}

CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset,
                            std::size_t* bytes) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (offset == nullptr) return kInvalidValue;
    if (!gpu.functions.has(function)) return kInvalidHandle;
    const sim::KernelInfo& info = gpu.device().info(function->id);
    if (index >= info.param_bytes.size()) return kInvalidValue;
    *offset = info.param_offset[index];
    if (bytes != nullptr) *bytes = info.param_bytes[index];
    return kSuccess;
  });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                     std::size_t dynamic_shared) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (blocks == nullptr || threads <= 0) return kInvalidValue;
    if (!gpu.functions.has(function)) return kInvalidHandle;
    *blocks = static_cast<int>(gpu.device().resident_blocks(
        function->id, static_cast<std::uint64_t>(threads), dynamic_shared));
    return kSuccess;
  });
}

}  // namespace assay::gpu
