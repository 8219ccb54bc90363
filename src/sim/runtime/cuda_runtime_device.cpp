// The device: a single one, with the properties in device_properties.h.
#include <cstdio>
#include <cstring>

#include "sim/runtime/api.h"
#include "sim/runtime/device_properties.h"
#include "sim/runtime/runtime.h"

namespace assay::sim::cuda {
namespace {

cudaDeviceProp properties_of(DeviceLink& device) {
  return device_properties(device.memory().capacity, device.multiprocessors());
}

constexpr int kVersion = 13000;
constexpr unsigned kDeviceFlags = 0xff, kScheduleFlags = 0x7, kMapHost = 0x8;
constexpr char kPciBusId[] = "0000:01:00.0";

cudaError_t check_device(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }

// Auto, spin, yield or blocking: at most one.
bool valid_flags(unsigned flags) {
  const unsigned schedule = flags & kScheduleFlags;
  return (flags & ~kDeviceFlags) == 0 && (schedule & (schedule - 1)) == 0;
}

std::size_t default_limit(cudaLimit limit) {
  switch (limit) {
    case cudaLimitStackSize: return 1024;
    case cudaLimitPrintfFifoSize: return 1 << 20;
    case cudaLimitMallocHeapSize: return 8 << 20;
    case cudaLimitDevRuntimePendingLaunchCount: return 2048;
    case cudaLimitMaxL2FetchGranularity: return 64;
    default: return 0;
  }
}

cudaError_t check_limit(cudaLimit limit) {
  if (limit == cudaLimitDevRuntimeSyncDepth) return cudaErrorUnsupportedLimit;
  return limit <= cudaLimitPersistingL2CacheSize ? cudaSuccess : cudaErrorInvalidValue;
}

// Versions can be queried in any state.
cudaError_t report_version(int* version) {
  if (version == nullptr) return remember(cudaErrorInvalidValue);
  *version = kVersion;
  return cudaSuccess;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  return call([&](Runtime&) {
    if (count == nullptr) return cudaErrorInvalidValue;
    *count = 1;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return call([&](Runtime&) {
    if (device == nullptr) return cudaErrorInvalidValue;
    *device = 0;
    return cudaSuccess;
  });
}

cudaError_t cudaSetDevice(int device) {
  return call([&](Runtime&) { return check_device(device); });
}

cudaError_t cudaInitDevice(int device, unsigned device_flags, unsigned flags) {
  return call([&](Runtime& runtime) {
    if (flags > 1) return cudaErrorInvalidValue;
    if (flags == 1 && !valid_flags(device_flags)) return cudaErrorInvalidValue;
    if (flags == 1) runtime.device_flags() = device_flags;
    return check_device(device);
  });
}

cudaError_t cudaSetValidDevices(int* devices, int count) {
  return call([&](Runtime&) {
    if (count < 0 || (count > 0 && devices == nullptr)) return cudaErrorInvalidValue;
    for (int i = 0; i < count; ++i) {
      if (devices[i] != 0) return cudaErrorInvalidDevice;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaSetDeviceFlags(unsigned flags) {
  return call([&](Runtime& runtime) {
    if (!valid_flags(flags)) return cudaErrorInvalidValue;
    runtime.device_flags() = flags;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return call([&](Runtime& runtime) {
    if (flags == nullptr) return cudaErrorInvalidValue;
    *flags = runtime.device_flags() & ~kMapHost;
    return cudaSuccess;
  });
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted) {
  return call([&](Runtime&) {
    if (device == nullptr || wanted == nullptr) return cudaErrorInvalidValue;
    *device = 0;
    return cudaSuccess;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call([&](Runtime& runtime) {
    if (properties == nullptr) return cudaErrorInvalidValue;
    if (device != 0) return cudaErrorInvalidDevice;
    *properties = properties_of(runtime.device());
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call([&](Runtime& runtime) {
    if (device != 0) return cudaErrorInvalidDevice;
    const auto found = device_attribute(properties_of(runtime.device()), attribute);
    if (value == nullptr || !found) return cudaErrorInvalidValue;
    *value = *found;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return call([&](Runtime&) {
    if (id == nullptr || length < static_cast<int>(sizeof kPciBusId)) return cudaErrorInvalidValue;
    if (device != 0) return cudaErrorInvalidDevice;
    std::memcpy(id, kPciBusId, sizeof kPciBusId);
    return cudaSuccess;
  });
}

// Domain and function are optional.
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id) {
  return call([&](Runtime&) {
    if (device == nullptr || id == nullptr) return cudaErrorInvalidValue;
    const std::string_view text(id);
    if (text != kPciBusId && text != "0000:01:00" && text != "01:00.0" && text != "01:00") {
      return cudaErrorInvalidDevice;
    }
    *device = 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSynchronize() {
  return call_blocking([](Runtime& runtime) {
    if (const cudaError_t error = runtime.captures().use_all(); error != cudaSuccess) return error;
    runtime.host_waits_for_all();
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceReset() {
  return call_blocking([](Runtime& runtime) { return runtime.reset(); });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return call([&](Runtime& runtime) {
    const cudaError_t error = check_limit(limit);
    if (error == cudaSuccess) runtime.limits()[limit] = value;
    return error;
  });
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
  return call([&](Runtime& runtime) {
    if (value == nullptr) return cudaErrorInvalidValue;
    if (const cudaError_t error = check_limit(limit); error != cudaSuccess) return error;
    const auto set = runtime.limits().find(limit);
    *value = set == runtime.limits().end() ? default_limit(limit) : set->second;
    return cudaSuccess;
  });
}

// Caches are not modelled: preferences are accepted and change nothing.
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return call([&](Runtime&) {
    if (config == nullptr) return cudaErrorInvalidValue;
    *config = cudaFuncCachePreferNone;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  return call([&](Runtime&) {
    return config <= cudaFuncCachePreferEqual ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return call([&](Runtime&) {
    if (config == nullptr) return cudaErrorInvalidValue;
    *config = cudaSharedMemBankSizeFourByte;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config) {
  return call([&](Runtime&) {
    return config <= cudaSharedMemBankSizeEightByte ? cudaSuccess : cudaErrorInvalidValue;
  });
}

cudaError_t cudaCtxResetPersistingL2Cache() {
  return call([](Runtime&) { return cudaSuccess; });
}

// As on a machine with one GPU: there is no peer.
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call([&](Runtime&) {
    if (can == nullptr) return cudaErrorInvalidValue;
    if (device != 0 || peer != 0) return cudaErrorInvalidDevice;
    *can = 0;
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int, unsigned flags) {
  return call(
      [&](Runtime&) { return flags != 0 ? cudaErrorInvalidValue : cudaErrorInvalidDevice; });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return call(
      [&](Runtime&) { return peer == 0 ? cudaErrorPeerAccessNotEnabled : cudaErrorInvalidDevice; });
}

cudaError_t cudaDriverGetVersion(int* version) { return report_version(version); }
cudaError_t cudaRuntimeGetVersion(int* version) { return report_version(version); }

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  return call([&](Runtime& runtime) {
    if (free_bytes == nullptr || total == nullptr) return cudaErrorInvalidValue;
    const MemoryInfo memory = runtime.device().memory();
    *total = memory.capacity;
    *free_bytes = memory.capacity - memory.live;
    return cudaSuccess;
  });
}

cudaError_t cudaProfilerStart() {
  return call([](Runtime&) { return cudaSuccess; });
}
cudaError_t cudaProfilerStop() {
  return call([](Runtime&) { return cudaSuccess; });
}

}  // namespace assay::sim::cuda
