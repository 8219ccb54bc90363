// A test double of NVIDIA's management library: libnvidia-ml-double.so exports what
// gpu/management.h uses of it, for the one GPU of the driver's double (support/cuda_double), so
// that tests need no GPU.
//
// It reports what the test sets in its process, and lists the calling process as computing on the
// GPU.
//
// Faults are given as text, see support/faults.h: "nvmlDeviceGetClockInfo:15@2". Calls count from 1
// since the faults were set. The environment variable ASSAY_NVML_DOUBLE holds the initial text; if
// it is not a valid fault text, the process exits.
#pragma once

#include <map>
#include <vector>

#define ASSAY_NVML_DOUBLE_EXPORT extern "C" __attribute__((visibility("default")))

namespace assay::gpu {

struct NvmlDoubleState {
  unsigned sm_mhz = 1755, memory_mhz = 3201, temperature_c = 41;
  unsigned long long reasons = 0;                // bits of nvmlClocksEventReason*
  std::map<int, unsigned long long> violations;  // ns, by policy; 0 for others
  bool lists_caller = true;                      // among the processes that compute
  std::vector<unsigned> processes;               // the other processes
};

}  // namespace assay::gpu

// What it reports, for tests to change.
ASSAY_NVML_DOUBLE_EXPORT assay::gpu::NvmlDoubleState* assay_nvml_double_state();

// Replaces all faults; "" removes them. Returns 0. If `text` is not a valid fault text, changes
// nothing, prints a line on stderr and returns 1.
ASSAY_NVML_DOUBLE_EXPORT int assay_nvml_double_faults(const char* text);

// Resets everything to the state before nvmlInit, without faults.
ASSAY_NVML_DOUBLE_EXPORT void assay_nvml_double_reset();
