// The real GPU of this machine, as a process of its own finds it: the harness loads no driver.
#pragma once

#include <optional>
#include <string>

#include "assay/gpu_state.h"
#include "sandbox/sandbox.h"

namespace assay::run {

// What of these libraries is loaded unless somebody names others.
inline constexpr const char *kCudaDriver = "libcuda.so.1", *kManagement = "libnvidia-ml.so.1";

// CUDA's driver opens files and starts threads of its own. It is told to load code with its module,
// not when a kernel first runs, and to keep nothing for other processes.
void make_fit_for_driver(sandbox::Program&);

struct GpuMachine {
  std::string name, driver;  // "NVIDIA H200"; the CUDA version of the driver, "13.0"
  std::string pci_bus_id;    // "0000:3b:00.0", by which the management library knows it
  std::string compute_capability;
  int multiprocessors = 0;
  double memory_bytes = 0;
  bool ecc = false;
  // Measured: bytes that a copy within its memory reads and writes in a second, and operations on
  // dense bf16 in a second, by mma.sync (device/gpu_speed.h).
  double copy_bytes_per_s = 0, bf16_flops_per_s = 0;

  // By the management library; absent is what it does not tell. Why there is none, "" if there is.
  std::string no_management;
  std::optional<std::string> driver_release;         // "580.95.05"
  std::optional<double> max_sm_mhz, max_memory_mhz;  // of clocks
  std::optional<bool> mig, persistence;
  GpuState state;                      // right after its speeds were measured
  std::optional<int> other_processes;  // that compute on it
};

// `driver` is the path or name of CUDA's driver library, `management` that of NVIDIA's management
// library, which need not be there. Throws Error that says why there is no GPU to be used.
GpuMachine find_gpu(const std::string& driver, const std::string& management);

}  // namespace assay::run
