// What `assay doctor` says of the real GPU.
#pragma once

#include <string>
#include <vector>

#include "assay/results.h"
#include "cli/diagnosis.h"

namespace assay::cli {

// `nvcc` is the version that the toolkit states (CudaToolkit::version), "" where there is none.
std::vector<Diagnosis> gpu_diagnosis(const GpuMachine&, const std::string& nvcc, bool is_root);

}  // namespace assay::cli
