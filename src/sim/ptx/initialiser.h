// Initial values of variables: PTX ISA, "Initializers".
#pragma once

#include <cstdint>
#include <vector>

#include "sim/ptx/constant.h"
#include "sim/ptx/module_names.h"

namespace assay::sim::ptx {

// Parses what follows '='. `extents` are those of the variable, outermost first; 0 for an array
// without a size, whose size follows from the values. Addresses must be of names already declared
// in the module.
void parse_initial_value(Cursor&, const std::vector<std::uint64_t>& extents, Variable&,
                         ModuleState&);

}  // namespace assay::sim::ptx
