#include "sim/runtime/device_properties.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "sim/device.h"
#include "sim/occupancy.h"

namespace assay::sim::cuda {
namespace {

constexpr char kName[] = "assay simulator (sm_90)";
constexpr int kIntMax = std::numeric_limits<int>::max();
constexpr int kClockKilohertz = 1'980'000, kMemoryClockKilohertz = 2'619'000;  // of an H100 SXM

struct AttributeRow {
  std::uint32_t number;
  int (*value)(const cudaDeviceProp&);
};

template <auto Member>
int field(const cudaDeviceProp& p) {
  return static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(p.*Member), kIntMax));
}
template <auto Member, int Index>
int element(const cudaDeviceProp& p) {
  return (p.*Member)[Index];
}
template <int Value>
int constant(const cudaDeviceProp&) {
  return Value;
}

using P = cudaDeviceProp;

// Attributes that are not 0, by the numbers of enum cudaDeviceAttr.
constexpr AttributeRow kAttributes[] = {
    {1, field<&P::maxThreadsPerBlock>},
    {2, element<&P::maxThreadsDim, 0>},
    {3, element<&P::maxThreadsDim, 1>},
    {4, element<&P::maxThreadsDim, 2>},
    {5, element<&P::maxGridSize, 0>},
    {6, element<&P::maxGridSize, 1>},
    {7, element<&P::maxGridSize, 2>},
    {8, field<&P::sharedMemPerBlock>},
    {9, field<&P::totalConstMem>},
    {10, field<&P::warpSize>},
    {11, field<&P::memPitch>},
    {12, field<&P::regsPerBlock>},
    {13, constant<kClockKilohertz>},
    {14, field<&P::textureAlignment>},
    {15, constant<1>},  // GpuOverlap
    {16, field<&P::multiProcessorCount>},
    {19, field<&P::canMapHostMemory>},
    {30, field<&P::surfaceAlignment>},
    {31, field<&P::concurrentKernels>},
    {33, field<&P::pciBusID>},
    {36, constant<kMemoryClockKilohertz>},
    {37, field<&P::memoryBusWidth>},
    {38, field<&P::l2CacheSize>},
    {39, field<&P::maxThreadsPerMultiProcessor>},
    {40, field<&P::asyncEngineCount>},
    {41, field<&P::unifiedAddressing>},
    {51, field<&P::texturePitchAlignment>},
    {75, field<&P::major>},
    {76, field<&P::minor>},
    {78, field<&P::streamPrioritiesSupported>},
    {79, field<&P::globalL1CacheSupported>},
    {80, field<&P::localL1CacheSupported>},
    {81, field<&P::sharedMemPerMultiprocessor>},
    {82, field<&P::regsPerMultiprocessor>},
    {83, field<&P::managedMemory>},
    {87, constant<2>},  // SingleToDoublePrecisionPerfRatio
    {89, field<&P::concurrentManagedAccess>},
    {90, field<&P::computePreemptionSupported>},
    {95, field<&P::cooperativeLaunch>},
    {97, field<&P::sharedMemPerBlockOptin>},
    {99, field<&P::hostRegisterSupported>},
    {106, field<&P::maxBlocksPerMultiProcessor>},
    {108, field<&P::persistingL2CacheMaxSize>},
    {109, field<&P::accessPolicyMaxWindowSize>},
    {111, field<&P::reservedSharedMemPerBlock>},
    {113, field<&P::hostRegisterReadOnlySupported>},
    {115, field<&P::memoryPoolsSupported>},
    {120, field<&P::clusterLaunch>},
    {126, constant<1>},   // MemSyncDomainCount
    {131, constant<-1>},  // NumaId
    {134, constant<-1>},  // HostNumaId
};

// Numbers that the enumeration skips.
bool exists(std::uint32_t number) {
  constexpr std::uint32_t kMissing[] = {44, 102, 103, 104, 105, 107, 110, 136, 137, 146};
  return number >= 1 && number <= 147 &&
         std::find(std::begin(kMissing), std::end(kMissing), number) == std::end(kMissing);
}

}  // namespace

cudaDeviceProp device_properties(std::uint64_t memory_bytes, std::uint32_t multiprocessors) {
  cudaDeviceProp p{};
  std::memcpy(p.name, kName, sizeof kName);
  std::memcpy(p.uuid.bytes, "assay-simulator", 16);
  p.totalGlobalMem = memory_bytes;
  p.sharedMemPerBlock = kMaxSharedPerBlock;
  p.regsPerBlock = kRegistersPerMultiprocessor;
  p.warpSize = kWarpSize;
  p.memPitch = kIntMax;
  p.maxThreadsPerBlock = kMaxThreadsPerBlock;
  std::copy_n(std::initializer_list<int>{1024, 1024, 64}.begin(), 3, p.maxThreadsDim);
  std::copy_n(std::initializer_list<int>{kIntMax, 65535, 65535}.begin(), 3, p.maxGridSize);
  p.totalConstMem = 64 << 10;
  p.major = 9;
  p.minor = 0;
  p.textureAlignment = 512;
  p.texturePitchAlignment = 32;
  p.surfaceAlignment = 512;
  p.multiProcessorCount = static_cast<int>(multiprocessors);
  p.canMapHostMemory = 1;
  p.concurrentKernels = 1;
  p.pciBusID = 1;
  p.asyncEngineCount = 3;
  p.unifiedAddressing = 1;
  p.memoryBusWidth = 5120;
  p.l2CacheSize = 50 << 20;
  p.persistingL2CacheMaxSize = 32 << 20;
  p.accessPolicyMaxWindowSize = 128 << 20;
  p.maxThreadsPerMultiProcessor = kMaxResidentThreads;
  p.maxBlocksPerMultiProcessor = kMaxResidentBlocks;
  p.streamPrioritiesSupported = 1;
  p.globalL1CacheSupported = 1;
  p.localL1CacheSupported = 1;
  p.sharedMemPerMultiprocessor = kSharedPerMultiprocessor;
  p.sharedMemPerBlockOptin = kMaxSharedOptin;
  p.reservedSharedMemPerBlock = kReservedSharedPerBlock;
  p.regsPerMultiprocessor = kRegistersPerMultiprocessor;
  p.computePreemptionSupported = 1;
  p.cooperativeLaunch = 1;
  p.clusterLaunch = 1;
  p.managedMemory = 1;
  p.concurrentManagedAccess = 1;
  p.hostRegisterSupported = 1;
  p.hostRegisterReadOnlySupported = 1;
  p.memoryPoolsSupported = 1;
  p.deviceNumaId = -1;
  p.hostNumaId = -1;
  return p;
}

std::optional<int> device_attribute(const cudaDeviceProp& properties, std::uint32_t attribute) {
  if (!exists(attribute)) return std::nullopt;
  const auto* row = std::find_if(std::begin(kAttributes), std::end(kAttributes),
                                 [&](const AttributeRow& r) { return r.number == attribute; });
  return row == std::end(kAttributes) ? 0 : row->value(properties);
}

}  // namespace assay::sim::cuda
