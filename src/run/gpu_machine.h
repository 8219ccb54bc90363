// The real GPU of this machine, as a process of its own finds it: the harness loads no driver.
#pragma once

#include <string>

namespace assay::run {

struct GpuMachine {
  std::string name, driver;  // "NVIDIA H200"; the CUDA version of the driver, "13.0"
  int multiprocessors = 0;
  double memory_bytes = 0;
  bool ecc = false;
  // Measured: bytes that a copy within its memory reads and writes in a second.
  double copy_bytes_per_s = 0;
};

// `driver` is the path or name of CUDA's driver library. Throws Error that says why there is no GPU
// to be used.
GpuMachine find_gpu(const std::string& driver);

}  // namespace assay::run
