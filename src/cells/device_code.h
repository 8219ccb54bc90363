// Disguises the device code of implementations on which own tests in CUDA run.
//
// nvcc puts the PTX of a source into the assembly of its host code, as numbers, and the names of
// kernels and variables as text by which the host code registers them. Like the host code (see
// cells/test_library.h), it is turned into twins that behave the same: names are derived from a
// secret, and instructions without effect are inserted. So tests that find PTX in their process
// cannot know its names, bytes or length in advance.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "cells/test_library.h"

namespace assay::cells {

// The same PTX, with mangled names replaced by the prefix and a number, and idle instructions in
// function bodies. `names` receives each name and its replacement.
std::string disguised_ptx(std::string_view ptx, const Disguise&,
                          std::map<std::string, std::string, std::less<>>& names);

// The same program with its device code disguised; unchanged if there is none. Throws Error if the
// assembly does not have the form nvcc 13 gives it.
std::string with_disguised_device_code(std::string_view assembly, const Disguise&);

}  // namespace assay::cells
