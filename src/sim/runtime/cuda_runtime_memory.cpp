// Allocation: device memory, pools, and page-locked host memory.
//
// The device has a copy of host memory that is mapped for it: see managed_memory.h. Memory that was
// allocated with cudaHostAllocMapped has the same address there; other memory has an address of its
// own, from the first call of cudaHostGetDevicePointer on.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <span>

#include "sim/address_map.h"
#include "sim/runtime/api.h"
#include "sim/runtime/runtime.h"

namespace assay::sim::cuda {
namespace {

constexpr std::size_t kPitchUnit = 512, kHostAlignment = 4096;  // bytes
constexpr unsigned kHostPortable = 1, kHostMapped = 2, kHostWriteCombined = 4;
constexpr unsigned kRegisterIoMemory = 4, kRegisterReadOnly = 8;

cudaError_t pitched(Runtime& runtime, void** pointer, std::size_t* pitch, std::size_t width,
                    std::size_t rows) {
  std::size_t padded = 0, bytes = 0;
  if (__builtin_add_overflow(width, kPitchUnit - 1, &padded)) return cudaErrorMemoryAllocation;
  padded = padded / kPitchUnit * kPitchUnit;
  if (__builtin_mul_overflow(padded, rows, &bytes)) return cudaErrorMemoryAllocation;
  *pitch = padded;
  return runtime.allocate(bytes, pointer);
}

cudaError_t allocate_host(void** pointer, std::size_t bytes, unsigned flags) {
  return call([&](Runtime& runtime) {
    constexpr unsigned known = kHostPortable | kHostMapped | kHostWriteCombined;
    if (pointer == nullptr || (flags & ~known) != 0) return cudaErrorInvalidValue;
    *pointer = nullptr;
    if (bytes == 0) return cudaSuccess;
    void* memory = nullptr;
    if ((flags & kHostMapped) != 0) {
      const cudaError_t error = runtime.allocate_managed(bytes, &memory, "cudaHostAlloc");
      if (error != cudaSuccess) return error;
    } else if (::posix_memalign(&memory, kHostAlignment, bytes) != 0) {
      return cudaErrorMemoryAllocation;
    }
    runtime.pinned()[reinterpret_cast<std::uintptr_t>(memory)] = bytes;
    runtime.host_flags()[reinterpret_cast<std::uintptr_t>(memory)] = flags;
    *pointer = memory;
    return cudaSuccess;
  });
}

// The host range in `ranges` that contains the address, by its start; 0 if none.
std::uintptr_t range_of(const std::map<std::uintptr_t, std::size_t>& ranges,
                        std::uintptr_t address) {
  auto after = ranges.upper_bound(address);
  if (after == ranges.begin()) return 0;
  --after;
  return address - after->first < after->second ? after->first : 0;
}

bool overlaps(const std::map<std::uintptr_t, std::size_t>& ranges, std::uintptr_t begin,
              std::size_t bytes) {
  const auto after = ranges.lower_bound(begin);
  return range_of(ranges, begin) != 0 || (after != ranges.end() && after->first - begin < bytes);
}

// `pool`: nullopt for the current one.
cudaError_t allocate_from(std::optional<cudaMemPool_t> pool, void** pointer, std::size_t bytes,
                          cudaStream_t stream, const char* name) {
  return call([&](Runtime& runtime) {
    const cudaMemPool_t from = pool.value_or(runtime.pools().current());
    if (pointer == nullptr || !runtime.pools().valid(from)) return cudaErrorInvalidValue;
    if (!runtime.valid(stream)) return cudaErrorInvalidResourceHandle;
    cudaError_t error = runtime.admit_uncaptured(stream, name);
    if (error != cudaSuccess) return error;
    *pointer = nullptr;
    if (!from->fits(bytes)) return cudaErrorMemoryAllocation;
    runtime.issue(stream, name);
    error = runtime.allocate(bytes, pointer);
    if (*pointer != nullptr)
      runtime.pools().took(from, reinterpret_cast<std::uintptr_t>(*pointer), bytes);
    runtime.touch(*pointer);
    return error;
  });
}

// The body of a function of a pool.
template <class Body>
cudaError_t with_pool(cudaMemPool_t pool, Body&& body) {
  return call([&](Runtime& runtime) {
    return runtime.pools().valid(pool) ? body(runtime) : cudaErrorInvalidValue;
  });
}

// The only device, or the host.
cudaError_t check_location(const cudaMemLocation& l) {
  if (l.type == cudaMemLocationTypeDevice) {
    return l.id == 0 ? cudaSuccess : cudaErrorInvalidDevice;
  }
  const bool host =
      l.type >= cudaMemLocationTypeHost && l.type <= cudaMemLocationTypeHostNumaCurrent;
  return host ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return call([&](Runtime& runtime) {
    if (pointer == nullptr) return cudaErrorInvalidValue;
    if (const cudaError_t error = runtime.admit_unsafe(); error != cudaSuccess) return error;
    return runtime.allocate(bytes, pointer);
  });
}

cudaError_t cudaFree(void* pointer) {
  return call_blocking([&](Runtime& runtime) {
    if (pointer == nullptr) return cudaSuccess;
    if (const cudaError_t error = runtime.admit_unsafe(); error != cudaSuccess) return error;
    runtime.host_waits_for_all();
    return runtime.pinned().contains(reinterpret_cast<std::uintptr_t>(pointer))
               ? cudaErrorInvalidValue  // cudaFreeHost frees it
               : runtime.free(pointer);
  });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return call([&](Runtime& runtime) {
    if (pointer == nullptr || pitch == nullptr) return cudaErrorInvalidValue;
    return pitched(runtime, pointer, pitch, width, height);
  });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
  return call([&](Runtime& runtime) {
    if (pointer == nullptr) return cudaErrorInvalidValue;
    std::size_t rows = 0;
    if (__builtin_mul_overflow(extent.height, extent.depth, &rows))
      return cudaErrorMemoryAllocation;
    pointer->xsize = extent.width;
    pointer->ysize = extent.height;
    return pitched(runtime, &pointer->ptr, &pointer->pitch, extent.width, rows);
  });
}

// --- managed memory: see managed_memory.h. The location of its pages is not simulated. ---

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  return call([&](Runtime& runtime) {
    constexpr unsigned kGlobal = 1, kHost = 2;
    if (pointer == nullptr || bytes == 0 || (flags != kGlobal && flags != kHost))
      return cudaErrorInvalidValue;
    if (const cudaError_t error = runtime.admit_unsafe(); error != cudaSuccess) return error;
    return runtime.allocate_managed(bytes, pointer, "cudaMallocManaged");
  });
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation to,
                                 unsigned flags, cudaStream_t stream) {
  return call([&](Runtime& runtime) {
    if (!runtime.valid(stream)) return cudaErrorInvalidResourceHandle;
    if (flags != 0 || bytes == 0 || !runtime.is_managed(pointer, bytes))
      return cudaErrorInvalidValue;
    if (const cudaError_t error = check_location(to); error != cudaSuccess) return error;
    return runtime.admit_uncaptured(stream, "cudaMemPrefetchAsync");
  });
}
ASSAY_CUDA_PER_THREAD(5, cudaMemPrefetchAsync, _ptsz);

cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice,
                          cudaMemLocation location) {
  return call([&](Runtime& runtime) {
    const bool known =
        advice >= cudaMemAdviseSetReadMostly && advice <= cudaMemAdviseUnsetAccessedBy;
    if (!known || bytes == 0 || !runtime.is_managed(pointer, bytes)) return cudaErrorInvalidValue;
    const bool placeless = advice <= cudaMemAdviseSetReadMostly + 1;  // the location is ignored
    return placeless ? cudaSuccess : check_location(location);
  });
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t bytes,
                                     unsigned flags) {
  return call([&](Runtime& runtime) {
    constexpr unsigned kGlobal = 1, kHost = 2, kSingle = 4;
    if (!runtime.valid(stream)) return cudaErrorInvalidResourceHandle;
    if (flags != kGlobal && flags != kHost && flags != kSingle) return cudaErrorInvalidValue;
    return runtime.is_managed(pointer, std::max<size_t>(bytes, 1)) ? cudaSuccess
                                                                   : cudaErrorInvalidValue;
  });
}
ASSAY_CUDA_PER_THREAD(4, cudaStreamAttachMemAsync, _ptsz);

// --- stream-ordered allocation: counts as a write of all of it in the order of operations ---

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                    cudaStream_t stream) {
  return allocate_from(pool, pointer, bytes, stream, "cudaMallocFromPoolAsync");
}
ASSAY_CUDA_PER_THREAD(4, cudaMallocFromPoolAsync, _ptsz);

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return allocate_from(std::nullopt, pointer, bytes, stream, "cudaMallocAsync");
}
ASSAY_CUDA_PER_THREAD(3, cudaMallocAsync, _ptsz);

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return call([&](Runtime& runtime) {
    if (!runtime.valid(stream)) return cudaErrorInvalidResourceHandle;
    const cudaError_t error = runtime.admit_uncaptured(stream, "cudaFreeAsync");
    if (error != cudaSuccess) return error;
    runtime.issue(stream, "cudaFreeAsync");
    runtime.touch(pointer);
    return runtime.free(pointer);
  });
}
ASSAY_CUDA_PER_THREAD(2, cudaFreeAsync, _ptsz);

// --- pools ---

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return call([&](Runtime& runtime) {
    if (pool == nullptr) return cudaErrorInvalidValue;
    if (device != 0) return cudaErrorInvalidDevice;
    *pool = runtime.pools().device_pool();
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return call([&](Runtime& runtime) {
    if (pool == nullptr) return cudaErrorInvalidValue;
    if (device != 0) return cudaErrorInvalidDevice;
    *pool = runtime.pools().current();
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return with_pool(pool, [&](Runtime& runtime) {
    if (device != 0) return cudaErrorInvalidDevice;
    runtime.pools().choose(pool);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return call([&](Runtime& runtime) {
    if (pool == nullptr || properties == nullptr) return cudaErrorInvalidValue;
    if (properties->allocType != cudaMemAllocationTypePinned)
      return runtime.unsupported("cudaMemPoolCreate of memory that is not pinned");
    if (properties->handleTypes != cudaMemHandleTypeNone)
      return runtime.unsupported("cudaMemPoolCreate of memory that other processes can import");
    if (properties->usage != 0)
      return runtime.unsupported("cudaMemPoolCreate for hardware decompression");
    if (const cudaError_t error = check_location(properties->location); error != cudaSuccess)
      return error;
    if (properties->location.type != cudaMemLocationTypeDevice)
      return runtime.unsupported("cudaMemPoolCreate of host memory");
    *pool = runtime.pools().create(properties->maxSize);
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return call([&](Runtime& runtime) {
    return runtime.pools().destroy(pool) ? cudaSuccess : cudaErrorInvalidValue;
  });
}

// The device accesses its own memory, always.
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access,
                                 size_t count) {
  return with_pool(pool, [&](Runtime&) {
    if (access == nullptr && count > 0) return cudaErrorInvalidValue;
    for (const cudaMemAccessDesc& a : std::span(access, count)) {
      if (a.location.type != cudaMemLocationTypeDevice) return cudaErrorInvalidValue;
      if (a.location.id != 0) return cudaErrorInvalidDevice;
      if (a.flags != cudaMemAccessFlagsProtReadWrite) return cudaErrorInvalidValue;
    }
    return cudaSuccess;
  });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                 cudaMemLocation* location) {
  return with_pool(pool, [&](Runtime&) {
    if (flags == nullptr || location == nullptr) return cudaErrorInvalidValue;
    if (location->type != cudaMemLocationTypeDevice) return cudaErrorInvalidValue;
    if (location->id != 0) return cudaErrorInvalidDevice;
    *flags = cudaMemAccessFlagsProtReadWrite;
    return cudaSuccess;
  });
}

// Freed memory is not kept in a pool, so there is nothing to trim.
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t) {
  return with_pool(pool, [&](Runtime&) { return cudaSuccess; });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return with_pool(pool, [&](Runtime&) {
    if (value == nullptr) return cudaErrorInvalidValue;
    const auto* bytes = static_cast<const std::uint64_t*>(value);
    switch (attribute) {
      case cudaMemPoolReuseFollowEventDependencies:
      case cudaMemPoolReuseAllowOpportunistic:
      case cudaMemPoolReuseAllowInternalDependencies:
        return cudaSuccess;  // nothing is reused early
      case cudaMemPoolAttrReleaseThreshold: pool->release_threshold = *bytes; return cudaSuccess;
      case cudaMemPoolAttrReservedMemHigh:
      case cudaMemPoolAttrUsedMemHigh:
        if (*bytes != 0) return cudaErrorInvalidValue;
        pool->most_used = pool->used;
        return cudaSuccess;
      default: return cudaErrorInvalidValue;
    }
  });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return with_pool(pool, [&](Runtime&) {
    if (value == nullptr) return cudaErrorInvalidValue;
    auto* bytes = static_cast<std::uint64_t*>(value);
    switch (attribute) {
      case cudaMemPoolReuseFollowEventDependencies:
      case cudaMemPoolReuseAllowOpportunistic:
      case cudaMemPoolReuseAllowInternalDependencies:
        *static_cast<int*>(value) = 1;
        return cudaSuccess;
      case cudaMemPoolAttrReleaseThreshold: *bytes = pool->release_threshold; return cudaSuccess;
      case cudaMemPoolAttrReservedMemCurrent:
      case cudaMemPoolAttrUsedMemCurrent: *bytes = pool->used; return cudaSuccess;
      case cudaMemPoolAttrReservedMemHigh:
      case cudaMemPoolAttrUsedMemHigh: *bytes = pool->most_used; return cudaSuccess;
      default: return cudaErrorInvalidValue;
    }
  });
}

// --- host memory ---

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return allocate_host(pointer, bytes, 0);
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return allocate_host(pointer, bytes, flags);
}

cudaError_t cudaFreeHost(void* pointer) {
  return call_blocking([&](Runtime& runtime) {
    if (pointer == nullptr) return cudaSuccess;
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    runtime.host_waits_for_all();
    if (runtime.pinned().erase(address) == 0) return cudaErrorInvalidValue;
    runtime.host_flags().erase(address);
    if (is_device(pointer)) return runtime.free(pointer);  // the host's and the device's
    runtime.unmap(pointer);
    std::free(pointer);
    return cudaSuccess;
  });
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return call([&](Runtime& runtime) {
    constexpr unsigned known = kHostPortable | kHostMapped | kRegisterIoMemory | kRegisterReadOnly;
    if (pointer == nullptr || bytes == 0 || (flags & ~known) != 0 || is_device(pointer)) {
      return cudaErrorInvalidValue;
    }
    if ((flags & kRegisterIoMemory) != 0)
      return runtime.unsupported("cudaHostRegister with cudaHostRegisterIoMemory");
    const auto begin = reinterpret_cast<std::uintptr_t>(pointer);
    if (overlaps(runtime.registered(), begin, bytes) || overlaps(runtime.pinned(), begin, bytes)) {
      return cudaErrorHostMemoryAlreadyRegistered;
    }
    runtime.registered()[begin] = bytes;
    runtime.host_flags()[begin] = flags;
    return cudaSuccess;
  });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return call([&](Runtime& runtime) {
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    if (pointer == nullptr) return cudaErrorInvalidValue;
    runtime.host_waits_for_all();
    if (runtime.registered().erase(address) == 0) return cudaErrorHostMemoryNotRegistered;
    runtime.host_flags().erase(address);
    runtime.unmap(pointer);
    return cudaSuccess;
  });
}

cudaError_t cudaHostGetDevicePointer(void** on_device, void* pointer, unsigned flags) {
  return call([&](Runtime& runtime) {
    if (on_device == nullptr || flags != 0) return cudaErrorInvalidValue;
    *on_device = nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    for (const auto* ranges : {&runtime.pinned(), &runtime.registered()}) {
      const std::uintptr_t begin = range_of(*ranges, address);
      if (begin == 0) continue;
      void* mapped = nullptr;
      const cudaError_t error = runtime.map(begin, ranges->at(begin), mapped);
      if (error == cudaSuccess) *on_device = static_cast<std::byte*>(mapped) + (address - begin);
      return error;
    }
    return cudaErrorInvalidValue;
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* pointer) {
  return call([&](Runtime& runtime) {
    const auto found = runtime.host_flags().find(reinterpret_cast<std::uintptr_t>(pointer));
    if (flags == nullptr || found == runtime.host_flags().end()) return cudaErrorInvalidValue;
    *flags = found->second;
    return cudaSuccess;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return call([&](Runtime& runtime) {
    if (attributes == nullptr) return cudaErrorInvalidValue;
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    void* same = const_cast<void*>(pointer);
    *attributes = {};
    const bool of_host =
        range_of(runtime.pinned(), address) != 0 || range_of(runtime.registered(), address) != 0;
    if (is_device(pointer) && !of_host) {
      if (runtime.device().allocation(address).bytes == 0) return cudaErrorInvalidValue;
      const bool managed = runtime.is_managed(pointer);
      attributes->type = managed ? cudaMemoryTypeManaged : cudaMemoryTypeDevice;
      attributes->devicePointer = same;
      if (managed) attributes->hostPointer = same;
      return cudaSuccess;
    }
    attributes->type = of_host ? cudaMemoryTypeHost : cudaMemoryTypeUnregistered;
    attributes->device = of_host ? 0 : -2;  // cudaInvalidDeviceId
    attributes->hostPointer = same;
    if (is_device(pointer)) attributes->devicePointer = same;
    return cudaSuccess;
  });
}

}  // namespace assay::sim::cuda
