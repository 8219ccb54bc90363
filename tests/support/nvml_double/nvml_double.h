// A test double of NVIDIA's management library: libnvidia-ml-double.so exports what
// gpu/management.h uses of it, for the one GPU of the driver's double (support/cuda_double), so
// that tests need no GPU.
//
// It says what the test sets in its process, and that the process that asks computes on the GPU.
//
// Faults are a text, see support/faults.h: "nvmlDeviceGetClockInfo:15@2". Calls count from 1 since
// the faults were set. The environment variable ASSAY_NVML_DOUBLE holds the text at first; a text
// there that is no fault text ends the process.
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
  std::vector<unsigned> processes;               // the others
};

}  // namespace assay::gpu

// What it says, to be changed.
ASSAY_NVML_DOUBLE_EXPORT assay::gpu::NvmlDoubleState* assay_nvml_double_state();

// Replaces all faults; "" removes them. Returns 0; 1, after a line on stderr, and without a change
// when `text` is no fault text.
ASSAY_NVML_DOUBLE_EXPORT int assay_nvml_double_faults(const char* text);

// Everything becomes as before nvmlInit, without faults.
ASSAY_NVML_DOUBLE_EXPORT void assay_nvml_double_reset();
