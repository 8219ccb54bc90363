// The report of `assay doctor` on the real GPU.
#pragma once

#include <string>
#include <vector>

#include "assay/results.h"
#include "cli/diagnosis.h"

namespace assay::cli {

// `nvcc` is the toolkit's version text (CudaToolkit::version), "" if there is no toolkit.
std::vector<Diagnosis> gpu_diagnosis(const GpuMachine&, const std::string& nvcc, bool is_root);

}  // namespace assay::cli
