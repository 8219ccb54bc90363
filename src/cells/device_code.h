// The device code in an implementation that own tests in CUDA meet.
//
// nvcc puts the PTX of a source into the assembly of its host code, as numbers, and the names of
// kernels and variables as text by which the host code registers them. Like the host code (see
// cells/test_library.h) it is made into twins that behave alike: names are derived from a secret,
// and instructions that do nothing stand between the others. So tests that find PTX in their
// process know neither its names nor its bytes or length beforehand.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "cells/test_library.h"

namespace assay::cells {

// The same PTX: its mangled names behind a prefix, numbered, and idle instructions in the bodies of
// functions. `names` are told of each name and what became of it.
std::string disguised_ptx(std::string_view ptx, const Disguise&,
                          std::map<std::string, std::string, std::less<>>& names);

// The same program, its device code disguised. Without device code it stays as it is. Throws Error
// where the assembly does not hold it as nvcc 13 does.
std::string with_disguised_device_code(std::string_view assembly, const Disguise&);

}  // namespace assay::cells
