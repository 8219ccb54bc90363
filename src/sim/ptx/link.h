// Links modules of relocatable device code (nvcc -rdc=true) into one, as nvlink does for machine
// code.
#pragma once

#include <stdexcept>
#include <vector>

#include "sim/ptx/ast.h"

namespace assay::sim::ptx {

// what() names what has two definitions, or is a function in one module and a variable in another.
class LinkError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The modules' functions and variables in order; a declaration of what another module defines is
// left out. Of several weak definitions of a name the first counts, unless one is not weak.
// Internal names that another module uses too get the suffix "@1", "@2" and so on, which no PTX
// name has; names of kernels stay as they are. Throws LinkError.
Module link(std::vector<Module>);

}  // namespace assay::sim::ptx
