// The real GPU of this machine, as a process of its own finds it: the harness loads no driver.
#pragma once

#include <string>

#include "assay/results.h"
#include "sandbox/sandbox.h"

namespace assay::run {

// Lets a program of that tier load `driver`, the path or name of CUDA's driver library, which it is
// told as its last argument. The driver is to load code with its module, not when a kernel first
// runs, and to keep nothing for other processes.
void make_fit_for_driver(sandbox::Tier, sandbox::Program&, const std::string& driver);

// `driver` is the path or name of CUDA's driver library. Throws Error that says why there is no GPU
// to be used.
GpuMachine find_gpu(const std::string& driver);
GpuMachine find_gpu(const std::string& driver, sandbox::Tier);

}  // namespace assay::run
