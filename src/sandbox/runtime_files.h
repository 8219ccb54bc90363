// The libraries that an answer may load: those of C and C++, listed one by one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "sandbox/sandbox.h"

namespace assay::sandbox {

enum class Runtime : std::uint8_t {
  // The dynamic linker, C, C++ and what compilers link on their own: libm, libgcc_s, libgomp.
  answer,
  // Also what assay's own images of CUDA workers and devices are linked with.
  image,
};

// Read-only mounts of these files, from where this program was linked with them. Throws Error when
// the C library is not found.
std::vector<Mount> runtime_mounts(Runtime);

// Some other library of this machine, which must not be loadable; "" if there is none.
std::filesystem::path foreign_library();

}  // namespace assay::sandbox
