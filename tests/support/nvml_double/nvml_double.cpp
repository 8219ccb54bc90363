#include "support/nvml_double/nvml_double.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "gpu/management.h"
#include "support/faults.h"

namespace assay::gpu {
namespace {

using testing::Faults;

constexpr char kDriverRelease[] = "580.95.05";
constexpr std::string_view kBusIds[] = {"0000:3b:00.0", "0000:5e:00.0", "0000:86:00.0"};
constexpr unsigned kMaxSmMhz = 1980, kMaxMemoryMhz = 3201;

constexpr auto kFunctions = std::to_array<std::string_view>({
#define ASSAY_NAME(member, name, parameters) #name,
    ASSAY_MANAGEMENT_FUNCTIONS(ASSAY_NAME)
#undef ASSAY_NAME
});

struct Double {
  std::mutex mutex;
  Faults faults;
  bool initialised = false;
  NvmlDoubleState state;
};

Faults parse(const char* text) { return {text, kFunctions, "gpu/management.h"}; }

Faults faults_of_environment() {
  const char* const text = std::getenv("ASSAY_NVML_DOUBLE");
  if (text == nullptr) return {};
  try {
    return parse(text);
  } catch (const std::invalid_argument& e) {
    fmt::print(stderr, "libnvidia-ml-double: environment variable ASSAY_NVML_DOUBLE: {}\n",
               e.what());
    std::abort();
  }
}

// Never destroyed: threads may still call when the process ends.
Double& only() {
  static Double& made = *[] {
    auto* const fresh = new Double;
    fresh->faults = faults_of_environment();
    return fresh;
  }();
  return made;
}

// Its address is the GPU's handle.
nvmlDevice_t device() {
  static char here = 0;
  return reinterpret_cast<nvmlDevice_t>(&here);
}

enum class Needs { nothing, library, device };

// What every function does around its own work: injects faults and checks the required state.
template <class Action>
nvmlReturn_t call(const char* function, Needs needs, nvmlDevice_t of, Action action) {
  std::unique_lock lock(only().mutex);
  const auto fault = only().faults.next(function);
  if (fault && fault->hangs) {
    lock.unlock();
    while (true) ::pause();
  }
  if (fault) return fault->code;
  if (needs != Needs::nothing && !only().initialised) return kNvmlUninitialized;
  if (needs == Needs::device && of != device()) return kNvmlInvalidArgument;
  return action(only().state);
}

template <class T>
nvmlReturn_t give(T* to, T value) {
  if (to == nullptr) return kNvmlInvalidArgument;
  *to = value;
  return kNvmlSuccess;
}

std::optional<unsigned> of_clock(int type, unsigned sm, unsigned memory) {
  if (type == kNvmlClockSm) return sm;
  if (type == kNvmlClockMemory) return memory;
  return std::nullopt;
}

}  // namespace

#define ASSAY_DECLARE_EXPORT(member, name, parameters) \
  ASSAY_NVML_DOUBLE_EXPORT nvmlReturn_t name parameters;
ASSAY_MANAGEMENT_FUNCTIONS(ASSAY_DECLARE_EXPORT)
#undef ASSAY_DECLARE_EXPORT
ASSAY_NVML_DOUBLE_EXPORT const char* nvmlErrorString(nvmlReturn_t);

nvmlReturn_t nvmlInit_v2() {
  return call(__func__, Needs::nothing, nullptr, [](NvmlDoubleState&) {
    only().initialised = true;
    return kNvmlSuccess;
  });
}

nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned bytes) {
  return call(__func__, Needs::library, nullptr, [&](NvmlDoubleState&) {
    if (version == nullptr) return kNvmlInvalidArgument;
    if (bytes < sizeof kDriverRelease) return kNvmlInsufficientSize;
    std::memcpy(version, kDriverRelease, sizeof kDriverRelease);
    return kNvmlSuccess;
  });
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, nvmlDevice_t* found) {
  return call(__func__, Needs::library, nullptr, [&](NvmlDoubleState&) {
    if (bus_id == nullptr) return kNvmlInvalidArgument;
    const bool known = std::ranges::find(kBusIds, bus_id) != std::end(kBusIds);
    return known ? give(found, device()) : kNvmlNotFound;
  });
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t of, int type, unsigned* mhz) {
  return call(__func__, Needs::device, of, [&](NvmlDoubleState& state) {
    const auto clock = of_clock(type, state.sm_mhz, state.memory_mhz);
    return clock ? give(mhz, *clock) : kNvmlInvalidArgument;
  });
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t of, int type, unsigned* mhz) {
  return call(__func__, Needs::device, of, [&](NvmlDoubleState&) {
    const auto clock = of_clock(type, kMaxSmMhz, kMaxMemoryMhz);
    return clock ? give(mhz, *clock) : kNvmlInvalidArgument;
  });
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t of, int sensor, unsigned* celsius) {
  return call(__func__, Needs::device, of, [&](NvmlDoubleState& state) {
    return sensor == kNvmlTemperatureGpu ? give(celsius, state.temperature_c)
                                         : kNvmlInvalidArgument;
  });
}

nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t of, int* current, int* pending) {
  return call(__func__, Needs::device, of, [&](NvmlDoubleState&) {
    return give(pending, 1) == kNvmlSuccess ? give(current, 1) : kNvmlInvalidArgument;
  });
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t of, unsigned* current, unsigned* pending) {
  return call(__func__, Needs::device, of, [&](NvmlDoubleState&) {
    return give(pending, 0u) == kNvmlSuccess ? give(current, 0u) : kNvmlInvalidArgument;
  });
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t of, int* mode) {
  return call(__func__, Needs::device, of, [&](NvmlDoubleState&) { return give(mode, 1); });
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t of, unsigned long long* reasons) {
  return call(__func__, Needs::device, of,
              [&](NvmlDoubleState& state) { return give(reasons, state.reasons); });
}

nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t of, int policy, nvmlViolationTime_t* time) {
  return call(__func__, Needs::device, of, [&](NvmlDoubleState& state) {
    const auto found = state.violations.find(policy);
    return give(time, {1, found == state.violations.end() ? 0 : found->second});
  });
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t of, unsigned* count,
                                                     nvmlProcessInfo_t* list) {
  return call(__func__, Needs::device, of, [&](NvmlDoubleState& state) {
    if (count == nullptr) return kNvmlInvalidArgument;
    std::vector<unsigned> all = state.processes;
    if (state.lists_caller) all.push_back(static_cast<unsigned>(::getpid()));
    const unsigned room = std::exchange(*count, static_cast<unsigned>(all.size()));
    if (room < all.size()) return kNvmlInsufficientSize;
    for (std::size_t i = 0; i < all.size(); ++i) list[i] = {all[i], 1 << 20, ~0u, ~0u};
    return kNvmlSuccess;
  });
}

const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case kNvmlSuccess: return "The operation was successful";
    case kNvmlUninitialized: return "Uninitialized";
    case kNvmlInvalidArgument: return "Invalid Argument";
    case kNvmlNotSupported: return "Not Supported";
    case kNvmlNoPermission: return "Insufficient Permissions";
    case kNvmlNotFound: return "Not Found";
    case kNvmlInsufficientSize: return "Insufficient Size";
    case kNvmlInsufficientPower: return "Insufficient External Power";
    case kNvmlDriverNotLoaded: return "Driver Not Loaded";
    case kNvmlIrqIssue: return "Interrupt Request Issue";
    case kNvmlGpuIsLost: return "GPU is lost";
    case kNvmlLibRmVersionMismatch: return "Driver/library version mismatch";
    default: return "Unknown Error";
  }
}

}  // namespace assay::gpu

using assay::gpu::only;

assay::gpu::NvmlDoubleState* assay_nvml_double_state() { return &only().state; }

int assay_nvml_double_faults(const char* text) {
  const std::lock_guard lock(only().mutex);
  try {
    only().faults = assay::gpu::parse(text);
    return 0;
  } catch (const std::invalid_argument& e) {
    fmt::print(stderr, "libnvidia-ml-double: {}\n", e.what());
    return 1;
  }
}

void assay_nvml_double_reset() {
  const std::lock_guard lock(only().mutex);
  only().faults = {};
  only().initialised = false;
  only().state = {};
}
