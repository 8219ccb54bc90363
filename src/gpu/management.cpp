#include "gpu/management.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace assay::gpu {
namespace {

// nvmlClocksEventReason* and, for older names, nvmlClocksThrottleReason*.
constexpr std::pair<unsigned long long, const char*> kReasons[] = {
    {0x1, "gpu_idle"},
    {0x2, "applications_clocks_setting"},
    {0x4, "sw_power_cap"},
    {0x8, "hw_slowdown"},
    {0x10, "sync_boost"},
    {0x20, "sw_thermal_slowdown"},
    {0x40, "hw_thermal_slowdown"},
    {0x80, "hw_power_brake_slowdown"},
    {0x100, "display_clock_setting"},
};

// Low utilisation is left out: an idle GPU that clocks down is not a violation.
constexpr std::pair<int, const char*> kViolations[] = {
    {kNvmlPolicyPower, "power"},
    {kNvmlPolicyThermal, "thermal"},
    {kNvmlPolicyReliability, "reliability"},
    {kNvmlPolicyBoardLimit, "board_limit"},
};

std::vector<std::string> words(unsigned long long reasons) {
  std::vector<std::string> found;
  for (const auto& [bit, word] : kReasons) {
    if ((reasons & bit) != 0) found.emplace_back(word);
    reasons &= ~bit;
  }
  if (reasons != 0) found.push_back(fmt::format("unknown reason {:#x}", reasons));
  return found;
}

void* open_management(const std::string& library) {
  // Never closed: the library keeps state.
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr) return handle;
  const char* const reason = ::dlerror();
  throw NoManagement(kNvmlLibraryNotFound,
                     fmt::format("no management library: {}; it comes with NVIDIA's driver, in "
                                 "containers only if they are given the driver's utilities",
                                 reason != nullptr ? reason : library + " cannot be loaded"));
}

void* find_entry(void* library, const std::string& path, const char* name) {
  void* const function = ::dlsym(library, name);
  if (function != nullptr) return function;
  throw ManagementError(
      kNvmlFunctionNotFound,
      fmt::format("the management library {} has no function {}; install NVIDIA's "
                  "driver for CUDA 12.4 or later",
                  path, name));
}

}  // namespace

Management::Management(const std::string& library, const std::string& pci_bus_id) {
  void* const handle = open_management(library);
// NOLINTBEGIN(bugprone-macro-parentheses): a type has none there
#define ASSAY_RESOLVE(member, name, parameters) \
  member = reinterpret_cast<nvmlReturn_t(*) parameters>(find_entry(handle, library, #name));
  ASSAY_MANAGEMENT_FUNCTIONS(ASSAY_RESOLVE)
#undef ASSAY_RESOLVE
  // NOLINTEND(bugprone-macro-parentheses)
  error_string_ = reinterpret_cast<const char* (*)(nvmlReturn_t)>(
      find_entry(handle, library, "nvmlErrorString"));
  require(init(), "nvmlInit_v2");
  require(device_by_bus_id(pci_bus_id.c_str(), &device_),
          fmt::format("nvmlDeviceGetHandleByPciBusId_v2 of {}", pci_bus_id).c_str());
}

void Management::fail(nvmlReturn_t result, const char* call) const {
  const char* const text = error_string_(result);
  throw ManagementError(
      result, fmt::format("NVIDIA's management library: {} failed with code {} ({}); check that "
                          "nvidia-smi lists the GPU",
                          call, result, text != nullptr ? text : "of which it has no text"));
}

void Management::require(nvmlReturn_t result, const char* call) const {
  if (result != kNvmlSuccess) fail(result, call);
}

bool Management::given(nvmlReturn_t result, const char* call) const {
  if (result == kNvmlNotSupported || result == kNvmlNoPermission) return false;
  require(result, call);
  return true;
}

GpuSetting Management::setting() const {
  GpuSetting setting;
  char release[80 + 1] = {};
  if (given(system_driver_version(release, sizeof release - 1), "nvmlSystemGetDriverVersion"))
    setting.driver_release = release;
  const auto maximum = [&](int type) -> std::optional<double> {
    unsigned mhz = 0;
    if (!given(max_clock(device_, type, &mhz), "nvmlDeviceGetMaxClockInfo")) return std::nullopt;
    return mhz;
  };
  setting.max_sm_mhz = maximum(kNvmlClockSm);
  setting.max_memory_mhz = maximum(kNvmlClockMemory);
  int mode = 0, pending = 0;
  if (given(ecc_mode(device_, &mode, &pending), "nvmlDeviceGetEccMode")) setting.ecc = mode != 0;
  if (given(persistence_mode(device_, &mode), "nvmlDeviceGetPersistenceMode"))
    setting.persistence = mode != 0;
  unsigned slices = 0, pending_slices = 0;
  if (given(mig_mode(device_, &slices, &pending_slices), "nvmlDeviceGetMigMode"))
    setting.mig = slices != 0;
  return setting;
}

GpuState Management::state() const {
  GpuState state;
  const auto now = [&](int type) -> std::optional<double> {
    unsigned mhz = 0;
    if (!given(clock(device_, type, &mhz), "nvmlDeviceGetClockInfo")) return std::nullopt;
    return mhz;
  };
  state.sm_mhz = now(kNvmlClockSm);
  state.memory_mhz = now(kNvmlClockMemory);
  unsigned celsius = 0;
  if (given(temperature(device_, kNvmlTemperatureGpu, &celsius), "nvmlDeviceGetTemperature"))
    state.temperature_c = celsius;
  unsigned long long reasons = 0;
  if (given(clock_reasons(device_, &reasons), "nvmlDeviceGetCurrentClocksEventReasons"))
    state.throttle_reasons = words(reasons);
  for (const auto& [policy, word] : kViolations) {
    nvmlViolationTime_t time{};
    if (given(violation(device_, policy, &time), "nvmlDeviceGetViolationStatus"))
      state.violation_ns[word] = time.violationTime;
  }
  return state;
}

// Processes may start during the listing, so the buffer may become too small again.
std::optional<std::vector<unsigned>> Management::computing() const {
  constexpr int kTries = 8;
  constexpr const char* kCall = "nvmlDeviceGetComputeRunningProcesses_v3";
  std::vector<nvmlProcessInfo_t> list(64);
  nvmlReturn_t result = kNvmlInsufficientSize;
  for (int i = 0; i < kTries && result == kNvmlInsufficientSize; ++i) {
    auto count = static_cast<unsigned>(list.size());
    result = compute_processes(device_, &count, list.data());
    if (result == kNvmlInsufficientSize) {
      list.resize(std::max<std::size_t>(2 * list.size(), count));
    } else if (result == kNvmlSuccess) {
      list.resize(std::min<std::size_t>(list.size(), count));
    }
  }
  if (!given(result, kCall)) return std::nullopt;
  std::vector<unsigned> ids;
  for (const nvmlProcessInfo_t& process : list) ids.push_back(process.pid);
  return ids;
}

std::optional<std::size_t> Management::other_processes(std::span<const unsigned> ours) const {
  const auto all = computing();
  if (!all) return std::nullopt;
  for (const unsigned id : ours) {
    if (std::ranges::find(*all, id) == all->end()) return std::nullopt;
  }
  return static_cast<std::size_t>(std::ranges::count_if(
      *all, [&](unsigned id) { return std::ranges::find(ours, id) == ours.end(); }));
}

}  // namespace assay::gpu
