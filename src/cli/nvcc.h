// NVIDIA's compiler: where it is, and CUDA programs compiled with it for the simulator.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace assay::cli {

struct Nvcc {
  std::filesystem::path path;
  std::string release;  // "13.0"
};

// From PATH, else $CUDA_HOME/bin, else /usr/local/cuda/bin. Throws Error, saying how to get one,
// when there is none or its release is not 13, whose runtime interface the simulator has.
Nvcc find_nvcc();

struct CudaBuild {
  std::vector<std::filesystem::path> sources;  // .cu, and C++ files that go with them
  std::string architecture = "sm_80";          // sm_80 or sm_90
  std::vector<std::string> flags;              // added at the end
};

// Compiles and links to a shared object in `folder`, which also takes nvcc's temporary files;
// nvcc's messages go to stderr. Throws Error when a source cannot be used or nvcc fails.
std::filesystem::path compile(const Nvcc&, const CudaBuild&, const std::filesystem::path& folder);

}  // namespace assay::cli
