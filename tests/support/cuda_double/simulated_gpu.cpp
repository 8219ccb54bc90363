#include "support/cuda_double/simulated_gpu.h"

#include <algorithm>

namespace assay::gpu {

std::uint64_t CUfunc_st::dynamic_shared_limit(const sim::KernelInfo& info) const {
  return max_dynamic_shared.value_or(sim::kMaxSharedPerBlock -
                                     std::min(info.static_shared_bytes, sim::kMaxSharedPerBlock));
}

sim::Device& SimulatedGpu::device() {
  if (!device_) {
    sim::DeviceOptions options;
    options.memory_bytes = kMemoryBytes;
    options.check_races = false;
    options.check_uninitialised = false;
    device_ = std::make_unique<sim::Device>(options);
  }
  return *device_;
}

}  // namespace assay::gpu
