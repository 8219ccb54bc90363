// Where the variables and parameters of a module lie.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/device.h"
#include "sim/execution/program.h"
#include "sim/operations/names.h"
#include "sim/ptx/ast.h"

namespace assay::sim {

// Variables of a module in global memory, by name.
using VariableTable = std::map<std::string, VariableInfo, std::less<>>;

// Offsets of a kernel's parameters.
void place_kernel_params(const ptx::Function&, KernelInfo&);

// Adds .local variables and, for an entry, its parameters; returns the bytes of local memory.
std::uint32_t place_locals(const ptx::Function&, const KernelInfo*, Names&);

// Rows of the .param variables of a .func and of its calls; returns the bytes of frame they take
// from `base` on. Variables of calls that are not in use at the same time share rows.
std::uint32_t place_rows(const ptx::Function&, std::uint32_t base, Names&, Code&);

// A code address for each function of the module.
void add_functions(const ptx::Module&, SymbolTable&);

struct SharedLayout {
  std::uint32_t static_bytes = 0;    // of variables with a size
  std::uint32_t dynamic_offset = 0;  // of those without
};
// Places the .shared variables that the functions declare or name.
SharedLayout place_shared(const ptx::Module&, const std::vector<const ptx::Function*>&,
                          SymbolTable&);

}  // namespace assay::sim
