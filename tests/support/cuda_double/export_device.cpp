// Initialisation, the device and its context.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include "sim/counters.h"
#include "support/cuda_double/call.h"

namespace assay::gpu {
namespace {

struct Gpu {
  std::string_view name, pci_bus_id;
};
constexpr Gpu kGpus[] = {{"Simulated H200", "0000:3b:00.0"},
                         {"Simulated H200", "0000:5e:00.0"},
                         {"Simulated H100", "0000:86:00.0"}};
constexpr int kDriverVersion = 13000;  // CUDA 13.0
constexpr unsigned kContextFlags = 0xff;

constexpr std::pair<int, int> kAttributes[] = {
    {kMaxThreadsPerBlockAttribute, sim::kMaxThreadsPerBlock},
    {kMaxBlockX, 1024},
    {kMaxBlockY, 1024},
    {kMaxBlockZ, 64},
    {kMaxGridX, 0x7fffffff},
    {kMaxGridY, 65535},
    {kMaxGridZ, 65535},
    {kClockRate, 1'980'000},
    {kMultiprocessorCount, sim::kMultiprocessors},
    {kEccEnabled, 1},
    // Small, since it is flushed before every timed call and a multiple of it is copied.
    {kL2CacheBytes, 4 << 20},
    {kComputeCapabilityMajor, 9},
    {kComputeCapabilityMinor, 0},
    {kCooperativeLaunchAttribute, 1},
    {kMaxSharedPerBlockOptin, sim::kMaxSharedOptin},
};

// The number of the GPU that this process sees, or nothing.
std::optional<std::size_t> visible_gpu() {
  const char* const named = std::getenv("CUDA_VISIBLE_DEVICES");
  if (named == nullptr) return 0;
  const std::string_view id = named;
  if (id.size() != 1 || id[0] < '0') return std::nullopt;
  const auto number = static_cast<std::size_t>(id[0] - '0');
  return number < std::size(kGpus) ? std::optional(number) : std::nullopt;
}

}  // namespace

CUresult cuInit(unsigned flags) {
  return call(__func__, Needs::nothing, [&](SimulatedGpu& gpu) {
    if (flags != 0) return kInvalidValue;
    const auto visible = visible_gpu();
    if (!visible) return kNoDevice;
    gpu.number = *visible;
    gpu.initialised = true;
    return kSuccess;
  });
}

CUresult cuDriverGetVersion(int* version) {
  return call(__func__, Needs::nothing, [&](SimulatedGpu&) {
    if (version == nullptr) return kInvalidValue;
    *version = kDriverVersion;
    return kSuccess;
  });
}

CUresult cuDeviceGetCount(int* count) {
  return call(__func__, Needs::driver, [&](SimulatedGpu&) {
    if (count == nullptr) return kInvalidValue;
    *count = 1;
    return kSuccess;
  });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  return call(__func__, Needs::driver, [&](SimulatedGpu&) {
    if (device == nullptr) return kInvalidValue;
    if (ordinal != 0) return kInvalidDevice;
    *device = 0;
    return kSuccess;
  });
}

CUresult cuDeviceGetName(char* name, int bytes, CUdevice device) {
  return call(__func__, Needs::driver, [&](const SimulatedGpu& gpu) {
    if (name == nullptr || bytes <= 0) return kInvalidValue;
    if (device != 0) return kInvalidDevice;
    const std::string_view whole = kGpus[gpu.number].name;
    name[whole.copy(name, static_cast<std::size_t>(bytes - 1))] = '\0';
    return kSuccess;
  });
}

CUresult cuDeviceGetPCIBusId(char* text, int bytes, CUdevice device) {
  return call(__func__, Needs::driver, [&](const SimulatedGpu& gpu) {
    const std::string_view id = kGpus[gpu.number].pci_bus_id;
    if (text == nullptr || bytes <= static_cast<int>(id.size())) return kInvalidValue;
    if (device != 0) return kInvalidDevice;
    text[id.copy(text, id.size())] = '\0';
    return kSuccess;
  });
}

CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice device) {
  return call(__func__, Needs::driver, [&](SimulatedGpu&) {
    if (bytes == nullptr) return kInvalidValue;
    if (device != 0) return kInvalidDevice;
    *bytes = kMemoryBytes;
    return kSuccess;
  });
}

CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice device) {
  return call(__func__, Needs::driver, [&](SimulatedGpu&) {
    if (value == nullptr) return kInvalidValue;
    if (device != 0) return kInvalidDevice;
    const auto* const row = std::ranges::find(kAttributes, attribute, &std::pair<int, int>::first);
    if (row == std::end(kAttributes)) return kInvalidValue;
    *value = row->second;
    return kSuccess;
  });
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  return call(__func__, Needs::driver, [&](SimulatedGpu&) {
    if (device != 0) return kInvalidDevice;
    return (flags & ~kContextFlags) == 0 ? kSuccess : kInvalidValue;
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return call(__func__, Needs::driver, [&](SimulatedGpu& gpu) {
    if (context == nullptr) return kInvalidValue;
    if (device != 0) return kInvalidDevice;
    *context = &gpu.context;
    return kSuccess;
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return call(__func__, Needs::driver, [&](SimulatedGpu& gpu) {
    if (context != nullptr && context != &gpu.context) return kInvalidContext;
    set_current_context(context);
    return kSuccess;
  });
}

CUresult cuCtxResetPersistingL2Cache(void) {
  return call(__func__, Needs::context, [](SimulatedGpu&) { return kSuccess; });
}

}  // namespace assay::gpu
