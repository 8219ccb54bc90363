// The parts of the CUDA driver API that assay uses, resolved at run time: assay does not link CUDA
// and builds without it.
//
// The names, values and signatures are those of cuda.h (CUDA 12.4 and later; NVIDIA, "CUDA Driver
// API Reference"). They are declared here so that assay builds without NVIDIA's headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace assay::gpu {

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = struct CUfunc_st*;
using CUstream = struct CUstream_st*;
using CUevent = struct CUevent_st*;
using CUmemGenericAllocationHandle = unsigned long long;

inline constexpr CUresult kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialized = 3,
                          kDeinitialized = 4, kDevicesUnavailable = 46, kNoDevice = 100,
                          kInvalidDevice = 101, kInvalidImage = 200, kInvalidContext = 201,
                          kNoBinaryForGpu = 209, kEccUncorrectable = 214, kInvalidPtx = 218,
                          kNvlinkUncorrectable = 220, kUnsupportedPtxVersion = 222,
                          kSharedObjectSymbolNotFound = 302, kSharedObjectInitFailed = 303,
                          kInvalidHandle = 400, kNotFound = 500, kNotReady = 600,
                          kIllegalAddress = 700, kLaunchOutOfResources = 701, kLaunchTimeout = 702,
                          kAssert = 710, kHardwareStackError = 714, kIllegalInstruction = 715,
                          kMisalignedAddress = 716, kInvalidAddressSpace = 717, kInvalidPc = 718,
                          kLaunchFailed = 719, kCooperativeLaunchTooLarge = 720,
                          kNotSupported = 801, kSystemNotReady = 802, kInvalidClusterSize = 912,
                          kUnknown = 999;

// CUdevice_attribute.
enum : int {
  kMaxThreadsPerBlockAttribute = 1,
  kMaxBlockX = 2,
  kMaxBlockY = 3,
  kMaxBlockZ = 4,
  kMaxGridX = 5,
  kMaxGridY = 6,
  kMaxGridZ = 7,
  kClockRate = 13,  // kHz
  kMultiprocessorCount = 16,
  kEccEnabled = 32,
  kL2CacheBytes = 38,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kCooperativeLaunchAttribute = 95,
  kMaxSharedPerBlockOptin = 97,
};

// CUfunction_attribute.
enum : int {
  kFunctionMaxThreads = 0,
  kFunctionSharedBytes = 1,
  kFunctionLocalBytes = 3,
  kFunctionRegisters = 4,
  kFunctionMaxDynamicShared = 8,
  kFunctionRequiredClusterWidth = 11,
  kFunctionRequiredClusterHeight = 12,
  kFunctionRequiredClusterDepth = 13,
  kFunctionLargeClusters = 14,  // NON_PORTABLE_CLUSTER_SIZE_ALLOWED
};

inline constexpr unsigned kNonBlockingStream = 1, kHostAllocDeviceMap = 2, kWaitValueGeq = 0,
                          kContextLmemResizeToMax = 0x10, kEventDisableTiming = 2;

// CUjit_option: a buffer that receives the error log for the PTX.
inline constexpr int kJitErrorLogBuffer = 5, kJitErrorLogBufferBytes = 6;

// The keys of cuLaunchKernel's `extra`.
inline constexpr std::uintptr_t kLaunchParamEnd = 0, kLaunchParamBufferPointer = 1,
                                kLaunchParamBufferSize = 2;

// CUlaunchAttribute with the members that are used, and CUlaunchConfig.
inline constexpr int kLaunchCooperative = 2, kLaunchClusterDimension = 4;
struct CUlaunchAttribute {
  int id = 0;
  char pad[4] = {};
  union {
    char bytes[64] = {};
    int cooperative;
    unsigned cluster[3];
  };
};
static_assert(sizeof(CUlaunchAttribute) == 72);
struct CUlaunchConfig {
  unsigned grid[3] = {}, block[3] = {}, shared = 0;
  CUstream stream = nullptr;
  CUlaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};

// CUmemLocation, CUmemAllocationProp, CUmemAccessDesc.
struct CUmemLocation {
  int type = 1;  // device
  int id = 0;
};
struct CUmemAllocationProp {
  int type = 1;  // pinned
  int requested_handle_types = 0;
  CUmemLocation location;
  void* win32_handle_meta_data = nullptr;
  struct {
    unsigned char compression_type = 0, gpu_direct_rdma_capable = 0;
    unsigned short usage = 0;
    unsigned char reserved[4] = {};
  } alloc_flags;
};
struct CUmemAccessDesc {
  CUmemLocation location;
  int flags = 3;  // read and write
};
static_assert(sizeof(CUmemAllocationProp) == 32 && sizeof(CUmemAccessDesc) == 12);

// A driver call failed, or the driver could not be loaded.
class DriverError : public std::runtime_error {
 public:
  DriverError(CUresult result, const std::string& what) : std::runtime_error(what), code(result) {}
  CUresult code;
};

// Every function used, as {member, name of the export, parameters}. The test double exports these.
#define ASSAY_DRIVER_FUNCTIONS(X)                                                               \
  X(init, cuInit, (unsigned flags))                                                             \
  X(driver_version, cuDriverGetVersion, (int* version))                                         \
  X(error_name, cuGetErrorName, (CUresult, const char** text))                                  \
  X(error_string, cuGetErrorString, (CUresult, const char** text))                              \
  X(device_count, cuDeviceGetCount, (int* count))                                               \
  X(device_get, cuDeviceGet, (CUdevice * device, int ordinal))                                  \
  X(device_name, cuDeviceGetName, (char* name, int bytes, CUdevice))                            \
  X(pci_bus_id, cuDeviceGetPCIBusId, (char* text, int bytes, CUdevice))                         \
  X(device_total_mem, cuDeviceTotalMem_v2, (std::size_t * bytes, CUdevice))                     \
  X(device_attribute, cuDeviceGetAttribute, (int* value, int attribute, CUdevice))              \
  X(primary_set_flags, cuDevicePrimaryCtxSetFlags_v2, (CUdevice, unsigned flags))               \
  X(primary_retain, cuDevicePrimaryCtxRetain, (CUcontext*, CUdevice))                           \
  X(context_set_current, cuCtxSetCurrent, (CUcontext))                                          \
  X(reset_persisting_l2, cuCtxResetPersistingL2Cache, (void))                                   \
  X(stream_create, cuStreamCreate, (CUstream*, unsigned flags))                                 \
  X(stream_synchronize, cuStreamSynchronize, (CUstream))                                        \
  X(stream_wait_value, cuStreamWaitValue32_v2,                                                  \
    (CUstream, CUdeviceptr, std::uint32_t value, unsigned flags))                               \
  X(event_create, cuEventCreate, (CUevent*, unsigned flags))                                    \
  X(event_record, cuEventRecord, (CUevent, CUstream))                                           \
  X(event_query, cuEventQuery, (CUevent))                                                       \
  X(event_elapsed, cuEventElapsedTime, (float* milliseconds, CUevent begin, CUevent end))       \
  X(host_alloc, cuMemHostAlloc, (void** p, std::size_t bytes, unsigned flags))                  \
  X(host_device_pointer, cuMemHostGetDevicePointer_v2, (CUdeviceptr*, void* p, unsigned flags)) \
  X(granularity, cuMemGetAllocationGranularity,                                                 \
    (std::size_t * bytes, const CUmemAllocationProp*, int option))                              \
  X(address_reserve, cuMemAddressReserve,                                                       \
    (CUdeviceptr*, std::size_t bytes, std::size_t alignment, CUdeviceptr wanted,                \
     unsigned long long flags))                                                                 \
  X(mem_create, cuMemCreate,                                                                    \
    (CUmemGenericAllocationHandle*, std::size_t bytes, const CUmemAllocationProp*,              \
     unsigned long long flags))                                                                 \
  X(mem_map, cuMemMap,                                                                          \
    (CUdeviceptr, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle,          \
     unsigned long long flags))                                                                 \
  X(mem_set_access, cuMemSetAccess,                                                             \
    (CUdeviceptr, std::size_t bytes, const CUmemAccessDesc*, std::size_t count))                \
  X(copy_to_device, cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void*, std::size_t, CUstream))    \
  X(copy_to_host, cuMemcpyDtoHAsync_v2, (void*, CUdeviceptr, std::size_t, CUstream))            \
  X(copy_within, cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, std::size_t, CUstream))       \
  X(fill, cuMemsetD8Async, (CUdeviceptr, unsigned char, std::size_t, CUstream))                 \
  X(module_load, cuModuleLoadDataEx,                                                            \
    (CUmodule*, const void* image, unsigned options, int* names, void** values))                \
  X(module_unload, cuModuleUnload, (CUmodule))                                                  \
  X(module_function, cuModuleGetFunction, (CUfunction*, CUmodule, const char* name))            \
  X(module_global, cuModuleGetGlobal_v2,                                                        \
    (CUdeviceptr*, std::size_t * bytes, CUmodule, const char* name))                            \
  X(function_attribute, cuFuncGetAttribute, (int* value, int attribute, CUfunction))            \
  X(function_set_attribute, cuFuncSetAttribute, (CUfunction, int attribute, int value))         \
  X(function_param, cuFuncGetParamInfo,                                                         \
    (CUfunction, std::size_t index, std::size_t * offset, std::size_t * bytes))                 \
  X(occupancy, cuOccupancyMaxActiveBlocksPerMultiprocessor,                                     \
    (int* blocks, CUfunction, int threads, std::size_t dynamic_shared))                         \
  X(tensor_map, cuTensorMapEncodeTiled,                                                         \
    (void* map, int element, std::uint32_t rank, void* address, const std::uint64_t* size,      \
     const std::uint64_t* stride_bytes, const std::uint32_t* box, const std::uint32_t* step,    \
     int interleave, int swizzle, int l2_promotion, int fill))                                  \
  X(launch, cuLaunchKernel,                                                                     \
    (CUfunction, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,  \
     unsigned shared, CUstream, void** params, void** extra))                                   \
  X(launch_extended, cuLaunchKernelEx,                                                          \
    (const CUlaunchConfig*, CUfunction, void** params, void** extra))                           \
  X(launch_cooperative, cuLaunchCooperativeKernel,                                              \
    (CUfunction, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,  \
     unsigned shared, CUstream, void** params))

// A loaded and initialised driver.
class Driver {
 public:
  // `library` is a path, or a name known to the dynamic linker. Throws DriverError with the cause
  // and the remedy.
  explicit Driver(const std::string& library = "libcuda.so.1");

// NOLINTBEGIN(bugprone-macro-parentheses): a declaration has none there
#define ASSAY_DECLARE(member, name, parameters) CUresult(*member) parameters = nullptr;
  ASSAY_DRIVER_FUNCTIONS(ASSAY_DECLARE)
#undef ASSAY_DECLARE
  // NOLINTEND(bugprone-macro-parentheses)

  // Throws DriverError unless `result` is kSuccess. `what` names the attempted action: "copying to
  // the GPU".
  void require(CUresult result, const char* what) const;
  // "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"
  std::string text_of(CUresult) const;

 private:
  void* library_ = nullptr;  // never closed: the driver runs its own threads
};

}  // namespace assay::gpu
