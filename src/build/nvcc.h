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

// nvcc from the environment variable ASSAY_NVCC (empty: none), PATH, CUDA_HOME or /usr/local/cuda,
// in this order, of release 13: the simulated device stands in for the runtime of that one. Throws
// Error when ASSAY_NVCC names what cannot be executed.
std::optional<CudaToolkit> find_cuda_toolkit();

// What is said where there is none.
inline constexpr const char* kNoToolkit = "not run: no CUDA Toolkit (nvcc) found";

// What the PTX is for, in the order of trying: the generation that the simulated device reports to
// be, then the same with its features that no other generation has (wgmma), for sources that ptxas
// refuses otherwise.
inline constexpr const char* kCudaArchitectures[] = {"compute_90", "compute_90a"};

// nvcc's options for a shared object with embedded PTX and, if it is asked for, the machine code
// made from it. The CUDA runtime is left out: the process that loads the object brings its own.
std::vector<std::string> cuda_flags(const std::string& architecture, bool machine_code);

// Whether ptxas found that the sources need more than the architecture has.
bool lacks_features(const std::string& log);

// Symbols that the linker found nowhere, of those that the CUDA runtime does not have: "" or one
// line each. `log` is what the linker printed under cuda_flags().
std::string foreign_symbols(const std::string& log);

// The log without the linker's warnings about undefined symbols.
std::string without_linker_warnings(const std::string& log);

}  // namespace assay
