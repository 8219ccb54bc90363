// The real GPU of this machine, as a separate process finds it: the harness itself never loads a
// driver.
#pragma once

#include <string>
#include <vector>

#include "assay/results.h"
#include "processes/device_report.h"
#include "sandbox/sandbox.h"

namespace assay::processes {

// The libraries to load unless others are named.
inline constexpr const char *kCudaDriver = "libcuda.so.1", *kManagement = "libnvidia-ml.so.1";

// Lets a program of that tier load NVIDIA's driver `libraries` (paths or names), which are passed
// as its last arguments. Configures the driver to load code together with its module, not when a
// kernel first runs, and to cache nothing for other processes.
void make_fit_for_driver(sandbox::Tier, sandbox::Program&,
                         const std::vector<std::string>& libraries);

// Has the driver in that program use this GPU.
void show_gpu(const RealGpu&, sandbox::Program&);

// `management` is the path or name of NVIDIA's management library, which may be missing. Throws an
// Error that says why the GPU cannot be used.
GpuMachine find_gpu(const RealGpu&, const std::string& management);
GpuMachine find_gpu(const RealGpu&, const std::string& management, sandbox::Tier);

}  // namespace assay::processes
