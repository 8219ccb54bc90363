// Kernel launches, attributes of kernels, and occupancy.
#include "sim/occupancy.h"
#include "sim/runtime/api.h"
#include "sim/runtime/runtime.h"

namespace assay::sim::cuda {
namespace {

// Runs `body(runtime, kernel)` for a loaded kernel.
template <class Body>
cudaError_t call_for(const void* function, Body&& body) {
  return call([&](Runtime& runtime) {
    Kernel* kernel = nullptr;
    const cudaError_t error = runtime.find_kernel(function, kernel);
    return error == cudaSuccess ? body(runtime, *kernel) : error;
  });
}

LaunchConfig config_of(dim3 grid, dim3 block, std::size_t shared_bytes, bool cooperative) {
  return {.grid = {grid.x, grid.y, grid.z},
          .block = {block.x, block.y, block.z},
          .dynamic_shared_bytes = shared_bytes,
          .cooperative = cooperative};
}

cudaError_t launch(const void* function, const LaunchConfig& config, void** args,
                   cudaStream_t stream) {
  return call_for(function, [&](Runtime& runtime, Kernel& kernel) {
    if (!runtime.valid(stream)) return cudaErrorInvalidResourceHandle;
    return runtime.launch(kernel, config, args, stream);
  });
}

// An attribute of cudaLaunchKernelEx. Cache and scheduling hints have no effect here.
cudaError_t apply(Runtime& runtime, const cudaLaunchAttribute& attribute, LaunchConfig& config) {
  const cudaLaunchAttributeValue& value = attribute.val;
  switch (attribute.id) {
    case cudaLaunchAttributeIgnore:
    case cudaLaunchAttributeAccessPolicyWindow:
    case cudaLaunchAttributeSynchronizationPolicy:
    case cudaLaunchAttributeClusterSchedulingPolicyPreference:
    // The previous kernel has ended, so this one may start.
    case cudaLaunchAttributeProgrammaticStreamSerialization:
    case cudaLaunchAttributePriority:
    case cudaLaunchAttributeMemSyncDomainMap:
    case cudaLaunchAttributeMemSyncDomain:
    case cudaLaunchAttributePreferredSharedMemoryCarveout:
    case cudaLaunchAttributeNvlinkUtilCentricScheduling: return cudaSuccess;
    case cudaLaunchAttributeCooperative:
      config.cooperative = value.cooperative != 0;
      return cudaSuccess;
    case cudaLaunchAttributeClusterDimension:
      config.cluster = {value.clusterDim.x, value.clusterDim.y, value.clusterDim.z};
      return cudaSuccess;
    case cudaLaunchAttributePreferredClusterDimension:
      return cudaSuccess;  // a hint; clusters have the other size
    case cudaLaunchAttributeProgrammaticEvent:
    case cudaLaunchAttributeLaunchCompletionEvent:
      return runtime.unsupported("launches that record an event");
    case cudaLaunchAttributeDeviceUpdatableKernelNode:
      return runtime.unsupported("launches that the device may update");
  }
  return cudaErrorInvalidValue;
}

cudaError_t read(Runtime& runtime, const cudaLaunchConfig_t* config, LaunchConfig& out) {
  if (config == nullptr || (config->numAttrs > 0 && config->attrs == nullptr)) {
    return cudaErrorInvalidValue;
  }
  if (!runtime.valid(config->stream)) return cudaErrorInvalidResourceHandle;
  out = config_of(config->gridDim, config->blockDim, config->dynamicSmemBytes, false);
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaError_t error = apply(runtime, config->attrs[i], out);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

// Runs `body(runtime, kernel, config)` for a loaded kernel and what the configuration says.
template <class Body>
cudaError_t call_with(const void* function, const cudaLaunchConfig_t* config, Body&& body) {
  return call_for(function, [&](Runtime& runtime, Kernel& kernel) {
    LaunchConfig plain;
    const cudaError_t error = read(runtime, config, plain);
    return error == cudaSuccess ? body(runtime, kernel, plain) : error;
  });
}

// Sets one extent of the clusters that every launch of the kernel must have.
cudaError_t require(Kernel& kernel, std::uint32_t Dim3::*extent, int value) {
  Dim3& required = kernel.device.info.required_cluster;
  if (value < 0) return cudaErrorInvalidValue;
  if (required.x == 0) required = Dim3{};
  required.*extent = static_cast<std::uint32_t>(std::max(value, 1));
  return cudaSuccess;
}

std::uint32_t resident_blocks(Runtime& runtime, const Kernel& kernel, const LaunchConfig& config) {
  return runtime.resident_blocks(kernel, static_cast<std::uint32_t>(config.block.count()),
                                 config.dynamic_shared_bytes);
}

int dynamic_limit(const Kernel& kernel) {
  if (kernel.max_dynamic_shared >= 0) return kernel.max_dynamic_shared;
  return static_cast<int>(kMaxSharedPerBlock) -
         static_cast<int>(kernel.device.info.static_shared_bytes);
}

cudaError_t set_attribute(Kernel& kernel, cudaFuncAttribute attribute, int value) {
  const KernelInfo& info = kernel.device.info;
  switch (attribute) {
    case cudaFuncAttributeMaxDynamicSharedMemorySize: {
      const bool fits =
          value >= 0 &&
          static_cast<std::uint64_t>(value) + info.static_shared_bytes <= kMaxSharedOptin;
      if (!fits) return cudaErrorInvalidValue;
      kernel.max_dynamic_shared = value;
      return cudaSuccess;
    }
    case cudaFuncAttributePreferredSharedMemoryCarveout:
      if (value < -1 || value > 100) return cudaErrorInvalidValue;
      kernel.shared_carveout = value;
      return cudaSuccess;
    case cudaFuncAttributeNonPortableClusterSizeAllowed:
      kernel.large_clusters = value != 0;
      return cudaSuccess;
    case cudaFuncAttributeClusterSchedulingPolicyPreference: return cudaSuccess;
    case cudaFuncAttributeRequiredClusterWidth: return require(kernel, &Dim3::x, value);
    case cudaFuncAttributeRequiredClusterHeight: return require(kernel, &Dim3::y, value);
    case cudaFuncAttributeRequiredClusterDepth: return require(kernel, &Dim3::z, value);
    case cudaFuncAttributeClusterDimMustBeSet: return cudaErrorInvalidValue;  // read-only
  }
  return cudaErrorInvalidValue;
}

}  // namespace

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** args,
                             size_t shared_bytes, cudaStream_t stream) {
  return launch(function, config_of(grid, block, shared_bytes, false), args, stream);
}
ASSAY_CUDA_PER_THREAD(6, cudaLaunchKernel, _ptsz);

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** args,
                                        size_t shared_bytes, cudaStream_t stream) {
  return launch(function, config_of(grid, block, shared_bytes, true), args, stream);
}
ASSAY_CUDA_PER_THREAD(6, cudaLaunchCooperativeKernel, _ptsz);

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** args) {
  return call_with(function, config, [&](Runtime& runtime, Kernel& kernel, LaunchConfig& plain) {
    return runtime.launch(kernel, plain, args, config->stream);
  });
}
ASSAY_CUDA_PER_THREAD(3, cudaLaunchKernelExC, _ptsz);

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function) {
  return call_for(function, [&](Runtime&, Kernel& kernel) {
    if (attributes == nullptr) return cudaErrorInvalidValue;
    const KernelInfo& info = kernel.device.info;
    *attributes = {};
    attributes->sharedSizeBytes = info.static_shared_bytes;
    attributes->localSizeBytes = info.local_bytes;
    attributes->maxThreadsPerBlock = static_cast<int>(info.max_threads);
    attributes->numRegs = static_cast<int>(registers_per_thread(info));
    attributes->ptxVersion = static_cast<int>(kernel.module->architecture);
    attributes->binaryVersion = 90;
    attributes->maxDynamicSharedSizeBytes = dynamic_limit(kernel);
    attributes->preferredShmemCarveout = kernel.shared_carveout;
    attributes->requiredClusterWidth = static_cast<int>(info.required_cluster.x);
    attributes->requiredClusterHeight = static_cast<int>(info.required_cluster.y);
    attributes->requiredClusterDepth = static_cast<int>(info.required_cluster.z);
    attributes->nonPortableClusterSizeAllowed = kernel.large_clusters ? 1 : 0;
    return cudaSuccess;
  });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value) {
  return call_for(
      function, [&](Runtime&, Kernel& kernel) { return set_attribute(kernel, attribute, value); });
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute,
                                            int value, int device) {
  if (device != 0) return remember(cudaErrorInvalidDevice);
  return cudaFuncSetAttribute(kernel, attribute, value);
}

cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache config) {
  return call_for(function, [&](Runtime&, Kernel&) {
    return config <= cudaFuncCachePreferEqual ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig config) {
  return call_for(function, [&](Runtime&, Kernel&) {
    return config <= cudaSharedMemBankSizeEightByte ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaFuncGetName(const char** name, const void* function) {
  return call_for(function, [&](Runtime&, Kernel& kernel) {
    if (name == nullptr) return cudaErrorInvalidValue;
    *name = kernel.name.c_str();
    return cudaSuccess;
  });
}

cudaError_t cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset,
                                 size_t* bytes) {
  return call_for(function, [&](Runtime&, Kernel& kernel) {
    const KernelInfo& info = kernel.device.info;
    if (offset == nullptr || index >= info.param_bytes.size()) return cudaErrorInvalidValue;
    *offset = info.param_offset[index];
    if (bytes != nullptr) *bytes = info.param_bytes[index];
    return cudaSuccess;
  });
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* host_function) {
  return call_for(host_function, [&](Runtime&, Kernel& found) {
    if (kernel == nullptr) return cudaErrorInvalidValue;
    *kernel = &found;
    return cudaSuccess;
  });
}

// The two handles are the same here: only the driver API, which is absent, takes a cudaFunction_t.
cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  return call_for(symbol, [&](Runtime&, Kernel& found) {
    if (function == nullptr) return cudaErrorInvalidValue;
    *function = reinterpret_cast<cudaFunction_t>(&found);
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function,
                                                          int threads, size_t dynamic_shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads,
                                                                dynamic_shared, 0);
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* function, int threads, size_t dynamic_shared, unsigned flags) {
  return call_for(function, [&](Runtime& runtime, Kernel& kernel) {
    if (blocks == nullptr || threads <= 0 || flags > 1) return cudaErrorInvalidValue;
    *blocks = static_cast<int>(
        runtime.resident_blocks(kernel, static_cast<std::uint32_t>(threads), dynamic_shared));
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* function,
                                           const cudaLaunchConfig_t* config) {
  return call_with(function, config, [&](Runtime& runtime, Kernel& kernel, LaunchConfig& plain) {
    if (clusters == nullptr) return cudaErrorInvalidValue;
    const Dim3 cluster = cluster_of(kernel.device.info, plain);
    if (!kernel.allows(plain.grid, cluster)) return cudaErrorInvalidClusterSize;
    *clusters = static_cast<int>(
        resident_clusters(resident_blocks(runtime, kernel, plain), cluster.count()));
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function,
                                                 const cudaLaunchConfig_t* config) {
  return call_with(function, config, [&](Runtime& runtime, Kernel& kernel, LaunchConfig& plain) {
    if (size == nullptr) return cudaErrorInvalidValue;
    const bool fits = resident_blocks(runtime, kernel, plain) != 0;
    *size = static_cast<int>(fits ? kernel.largest_cluster() : 0);
    return cudaSuccess;
  });
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, const void* function,
                                                      int blocks, int threads) {
  return call_for(function, [&](Runtime&, Kernel& kernel) {
    if (bytes == nullptr || blocks <= 0 || threads <= 0) return cudaErrorInvalidValue;
    const KernelInfo& info = kernel.device.info;
    const auto wanted = static_cast<std::uint32_t>(blocks);
    if (blocks_per_multiprocessor(info, static_cast<std::uint32_t>(threads), 0) < wanted) {
      return cudaErrorInvalidValue;
    }
    *bytes = dynamic_shared_for(info, wanted);
    return cudaSuccess;
  });
}

}  // namespace assay::sim::cuda
