// The CUDA Toolkit that builds submissions in CUDA, if there is one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace assay {

struct CudaToolkit {
  std::filesystem::path nvcc;  // real path
  std::filesystem::path root;  // the folder that holds bin/, nvvm/ and include/
  std::string version;         // "Cuda compilation tools, release 13.0, V13.0.88"
};

// nvcc from the environment variable ASSAY_NVCC (empty: none), PATH, CUDA_HOME or /usr/local/cuda, in this order.
// Throws Error when ASSAY_NVCC names what cannot be executed.
std::optional<CudaToolkit> find_cuda_toolkit();

// What is said where there is none.
inline constexpr const char* kNoToolkit = "not run: no CUDA Toolkit (nvcc) found";

// nvcc's options for a shared object with embedded PTX and no machine code. PTX of compute_90 is what a GPU of that
// generation would be given, and what the simulated one reports to be. The CUDA runtime is left out: the process that
// loads the object brings its own.
const std::vector<std::string>& cuda_flags();

// Symbols that the linker found nowhere, of those that the CUDA runtime does not have: "" or one line each. `log` is
// what the linker printed under cuda_flags().
std::string foreign_symbols(const std::string& log);

}  // namespace assay
