// The CUDA Toolkit that builds submissions in CUDA, if there is one.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay {

struct CudaToolkit {
  std::filesystem::path nvcc;  // real path
  std::filesystem::path root;  // the folder that holds bin/, nvvm/ and include/
  std::string version;         // "Cuda compilation tools, release 13.0, V13.0.88"
};

// Finds nvcc through the environment variable ASSAY_NVCC (empty: none), PATH, CUDA_HOME or
// /usr/local/cuda, in this order. Throws Error if ASSAY_NVCC names a file that cannot be executed.
std::optional<std::filesystem::path> nvcc_path();

// The toolkit of that nvcc. It must be release 13, because the simulated device stands in for that
// runtime.
std::optional<CudaToolkit> find_cuda_toolkit();

// Message if there is none.
inline constexpr const char* kNoToolkit = "not run: no CUDA Toolkit (nvcc) found";

// PTX architectures in the order they are tried: the generation the simulated device reports, then
// the same with its architecture-specific features (wgmma), for sources that ptxas otherwise
// rejects. Sources that ask for the features are compiled with them at once.
inline constexpr const char* kCudaArchitectures[] = {"compute_90", "compute_90a"};

// nvcc's options for a shared object with embedded PTX and, on request, the machine code made from
// it. The CUDA runtime is not linked in: the process that loads the object provides its own.
std::vector<std::string> cuda_flags(const std::string& architecture, bool machine_code);

// Whether a source depends on the preprocessor's word for architecture-specific features. Without
// them it would compile too, but not to what its author means.
bool asks_for_features(std::string_view source);

// Whether ptxas reported that the sources need features the architecture lacks.
bool lacks_features(const std::string& log);

// Undefined symbols that do not belong to the CUDA runtime: "" or one line each. `log` is what the
// linker printed under cuda_flags().
std::string foreign_symbols(const std::string& log);

// The log without the linker's warnings about undefined symbols.
std::string without_linker_warnings(const std::string& log);

}  // namespace assay
