// The real GPU of this machine, as a process of its own finds it: the harness loads no driver.
#pragma once

#include <string>
#include <vector>

#include "assay/results.h"
#include "sandbox/sandbox.h"

namespace assay::processes {

// What of these libraries is loaded unless somebody names others.
inline constexpr const char *kCudaDriver = "libcuda.so.1", *kManagement = "libnvidia-ml.so.1";

// Lets a program of that tier load `libraries` of NVIDIA's driver, paths or names, which it is told
// as its last arguments. The driver is to load code with its module, not when a kernel first runs,
// and to keep nothing for other processes.
void make_fit_for_driver(sandbox::Tier, sandbox::Program&,
                         const std::vector<std::string>& libraries);

// `driver` is the path or name of CUDA's driver library, `management` that of NVIDIA's management
// library, which need not be there. Throws Error that says why there is no GPU to be used.
GpuMachine find_gpu(const std::string& driver, const std::string& management);
GpuMachine find_gpu(const std::string& driver, const std::string& management, sandbox::Tier);

}  // namespace assay::processes
