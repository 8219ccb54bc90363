// Host memory, and device memory: what is reserved, mapped and accessible.
#include <algorithm>
#include <bit>

#include "support/cuda_double/call.h"

namespace assay::gpu {
namespace {

constexpr int kPinned = 1, kOnDevice = 1;  // CUmemAllocationType, CUmemLocationType
constexpr unsigned kHostAllocFlags = 0x7;  // portable, device map, write combined

CUresult check_location(const CUmemLocation& location) {
  if (location.type != kOnDevice) return kInvalidValue;
  return location.id == 0 ? kSuccess : kInvalidDevice;
}

CUresult check_properties(const CUmemAllocationProp* properties) {
  if (properties == nullptr || properties->type != kPinned) return kInvalidValue;
  if (properties->requested_handle_types != 0) return kNotSupported;
  return check_location(properties->location);
}

}  // namespace

CUresult cuMemHostAlloc(void** memory, std::size_t bytes, unsigned flags) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    if (memory == nullptr || bytes == 0 || (flags & ~kHostAllocFlags) != 0) return kInvalidValue;
    *memory = gpu.host.allocate(bytes);
    return kSuccess;
  });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* memory, unsigned flags) {
  return call(__func__, Needs::context, [&](SimulatedGpu& gpu) {
    const auto at = reinterpret_cast<std::uintptr_t>(memory);
    if (address == nullptr || flags != 0 || !gpu.host.contains({at, 1})) return kInvalidValue;
    *address = at;
    return kSuccess;
  });
}

CUresult cuMemGetAllocationGranularity(std::size_t* bytes, const CUmemAllocationProp* properties,
                                       int option) {
  return call(__func__, Needs::driver, [&](SimulatedGpu&) {
    if (bytes == nullptr || (option != 0 && option != 1)) return kInvalidValue;
    if (const CUresult wrong = check_properties(properties); wrong != kSuccess) return wrong;
    *bytes = kGranularity;
    return kSuccess;
  });
}

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t bytes, std::size_t alignment,
                             CUdeviceptr, unsigned long long flags) {
  return call(__func__, Needs::driver, [&](SimulatedGpu& gpu) {
    if (address == nullptr || bytes == 0 || bytes % kGranularity != 0) return kInvalidValue;
    if (flags != 0 || (alignment != 0 && !std::has_single_bit(alignment))) return kInvalidValue;
    const std::uint64_t step = std::max<std::uint64_t>(alignment, kGranularity);
    if (bytes > kMemoryBytes || step > kMemoryBytes) return kOutOfMemory;
    // The simulator aligns less strictly: allocate `step` bytes more, so that an aligned range of
    // `bytes` fits.
    const std::uint64_t begin = gpu.device().allocate(bytes + step);
    if (begin == 0) return kOutOfMemory;
    *address = (begin + step - 1) / step * step;
    gpu.addresses.reserve({*address, bytes});
    return kSuccess;
  });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  return call(__func__, Needs::driver, [&](SimulatedGpu& gpu) {
    if (handle == nullptr || flags != 0) return kInvalidValue;
    if (const CUresult wrong = check_properties(properties); wrong != kSuccess) return wrong;
    return gpu.addresses.create(bytes, kMemoryBytes, handle);
  });
}

CUresult cuMemMap(CUdeviceptr address, std::size_t bytes, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return call(__func__, Needs::driver, [&](SimulatedGpu& gpu) {
    if (flags != 0) return kInvalidValue;
    return gpu.addresses.map({address, bytes}, offset, handle);
  });
}

CUresult cuMemSetAccess(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* access,
                        std::size_t count) {
  return call(__func__, Needs::driver, [&](SimulatedGpu& gpu) {
    if (access == nullptr || count != 1) return kInvalidValue;
    if (const CUresult wrong = check_location(access->location); wrong != kSuccess) return wrong;
    return gpu.addresses.set_access({address, bytes}, access->flags);
  });
}

}  // namespace assay::gpu
