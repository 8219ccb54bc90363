// What an answer may load: the libraries of C and C++, one by one, and nothing else that is
// installed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "sandbox/sandbox.h"

namespace assay::sandbox {

enum class Runtime : std::uint8_t {
  // The dynamic linker, C, C++ and what compilers link on their own: libm, libgcc_s, libgomp.
  answer,
  // And what our own images of CUDA workers and devices are linked with.
  image,
};

// Read-only mounts of these files, where this program itself found them. Throws Error when there is
// no C library among them.
std::vector<Mount> runtime_mounts(Runtime);

// A library of this machine that is none of them, or "" if there is no other: what must not be
// loadable.
std::filesystem::path foreign_library();

}  // namespace assay::sandbox
