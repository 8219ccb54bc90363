// Finds NVIDIA's compiler, and compiles CUDA programs with it for the simulator.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/object_cache.h"

namespace assay::cli {

struct Nvcc {
  std::filesystem::path path;
  std::string release;  // "13.0"
};

// Looks in PATH, then $CUDA_HOME/bin, then /usr/local/cuda/bin. Throws Error, with the remedy, if
// there is none or its release is not 13, whose runtime interface the simulator implements.
Nvcc find_nvcc();

struct CudaBuild {
  std::vector<std::filesystem::path> sources;  // .cu files, and C++ files that belong to them
  std::string architecture = "sm_80";          // sm_80, sm_90 or sm_90a
  std::vector<std::string> flags;              // appended
};

struct CudaLibraries {
  std::filesystem::path program;  // a shared object
  // To be loaded first, with its symbols for all; empty unless compiled with -rdc=true. It stands
  // in for the device linker's host code.
  std::filesystem::path modules;
};

// Compiles and links in `folder`, which also holds nvcc's temporary files; nvcc's messages go to
// stderr. An object comes from the cache unless something that it was made from has changed, and so
// does the program if no flag can name a library. Where nvcc prints a message, its output is not
// kept, so the next run prints the message too. Throws
// Error if a source cannot be used or nvcc fails.
CudaLibraries compile(const Nvcc&, const CudaBuild&, const std::filesystem::path& folder,
                      ObjectCache&);

}  // namespace assay::cli
