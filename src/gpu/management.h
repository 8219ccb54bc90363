// The parts of NVIDIA's management library (NVML) that assay uses, resolved at run time like the
// driver. It reports what the driver API does not, such as a GPU's current clocks and the reasons
// for throttling.
//
// The names, values and signatures are those of nvml.h (CUDA 12.4 and later; NVIDIA, "NVML API
// Reference Guide"). They are declared here so that assay builds without NVIDIA's headers.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "assay/gpu_state.h"

namespace assay::gpu {

using nvmlReturn_t = int;
using nvmlDevice_t = struct nvmlDevice_st*;

inline constexpr nvmlReturn_t kNvmlSuccess = 0, kNvmlUninitialized = 1, kNvmlInvalidArgument = 2,
                              kNvmlNotSupported = 3, kNvmlNoPermission = 4, kNvmlNotFound = 6,
                              kNvmlInsufficientSize = 7, kNvmlInsufficientPower = 8,
                              kNvmlDriverNotLoaded = 9, kNvmlIrqIssue = 11,
                              kNvmlLibraryNotFound = 12, kNvmlFunctionNotFound = 13,
                              kNvmlGpuIsLost = 15, kNvmlLibRmVersionMismatch = 18,
                              kNvmlUnknown = 999;

// nvmlClockType_t, nvmlTemperatureSensors_t.
enum : int { kNvmlClockSm = 1, kNvmlClockMemory = 2 };
enum : int { kNvmlTemperatureGpu = 0 };

// nvmlPerfPolicyType_t.
enum : int {
  kNvmlPolicyPower = 0,
  kNvmlPolicyThermal = 1,
  kNvmlPolicyBoardLimit = 3,
  kNvmlPolicyReliability = 5,
};

struct nvmlViolationTime_t {
  unsigned long long referenceTime;  // us
  unsigned long long violationTime;  // ns
};
struct nvmlProcessInfo_t {  // struct version 2, used by version 3 of the function
  unsigned pid;
  unsigned long long usedGpuMemory;
  unsigned gpuInstanceId, computeInstanceId;
};
static_assert(sizeof(nvmlViolationTime_t) == 16 && sizeof(nvmlProcessInfo_t) == 24);

// A call that failed.
class ManagementError : public std::runtime_error {
 public:
  ManagementError(nvmlReturn_t result, const std::string& what)
      : std::runtime_error(what), code(result) {}
  nvmlReturn_t code;
};

// The library does not exist on this machine.
class NoManagement : public ManagementError {
 public:
  using ManagementError::ManagementError;
};

// Every function used, as {member, name of the export, parameters}. All return nvmlReturn_t. The
// test double exports these, and nvmlErrorString.
#define ASSAY_MANAGEMENT_FUNCTIONS(X)                                                           \
  X(init, nvmlInit_v2, ())                                                                      \
  X(system_driver_version, nvmlSystemGetDriverVersion, (char* version, unsigned bytes))         \
  X(device_by_bus_id, nvmlDeviceGetHandleByPciBusId_v2, (const char* bus_id, nvmlDevice_t*))    \
  X(clock, nvmlDeviceGetClockInfo, (nvmlDevice_t, int type, unsigned* mhz))                     \
  X(max_clock, nvmlDeviceGetMaxClockInfo, (nvmlDevice_t, int type, unsigned* mhz))              \
  X(temperature, nvmlDeviceGetTemperature, (nvmlDevice_t, int sensor, unsigned* celsius))       \
  X(ecc_mode, nvmlDeviceGetEccMode, (nvmlDevice_t, int* current, int* pending))                 \
  X(mig_mode, nvmlDeviceGetMigMode, (nvmlDevice_t, unsigned* current, unsigned* pending))       \
  X(persistence_mode, nvmlDeviceGetPersistenceMode, (nvmlDevice_t, int* mode))                  \
  X(clock_reasons, nvmlDeviceGetCurrentClocksEventReasons, (nvmlDevice_t, unsigned long long*)) \
  X(violation, nvmlDeviceGetViolationStatus, (nvmlDevice_t, int policy, nvmlViolationTime_t*))  \
  X(compute_processes, nvmlDeviceGetComputeRunningProcesses_v3,                                 \
    (nvmlDevice_t, unsigned* count, nvmlProcessInfo_t*))

// Properties that stay constant while a GPU is used, or are set by its administrator. Values that
// the library does not report for this GPU or to this user are absent.
struct GpuSetting {
  std::optional<std::string> driver_release;         // "580.95.05"
  std::optional<double> max_sm_mhz, max_memory_mhz;  // maximum clocks
  std::optional<bool> ecc, mig, persistence;         // whether each is on now
};

// The loaded and initialised library, and one of its GPUs. Values it does not support or does not
// permit this user to read are absent. Any other failure is a ManagementError naming call and code.
class Management {
 public:
  // `library` is a path, or a name known to the dynamic linker; `pci_bus_id` is as given by the
  // driver. Throws NoManagement if there is no such library.
  Management(const std::string& library, const std::string& pci_bus_id);

  GpuSetting setting() const;
  GpuState state() const;
  // How many processes other than `ours` compute on the GPU; all of `ours` must have a context on
  // it. Also absent if one of `ours` is not in the library's list: it then uses other process ids,
  // as inside a container, and ours cannot be told apart.
  std::optional<std::size_t> other_processes(std::span<const unsigned> ours) const;

// NOLINTBEGIN(bugprone-macro-parentheses): a declaration has none there
#define ASSAY_DECLARE(member, name, parameters) nvmlReturn_t(*member) parameters = nullptr;
  ASSAY_MANAGEMENT_FUNCTIONS(ASSAY_DECLARE)
#undef ASSAY_DECLARE
  // NOLINTEND(bugprone-macro-parentheses)

 private:
  // Whether the call returned a value.
  bool given(nvmlReturn_t, const char* call) const;
  void require(nvmlReturn_t, const char* call) const;
  [[noreturn]] void fail(nvmlReturn_t, const char* call) const;
  std::optional<std::vector<unsigned>> computing() const;  // their process ids

  const char* (*error_string_)(nvmlReturn_t) = nullptr;
  nvmlDevice_t device_ = nullptr;
};

}  // namespace assay::gpu
