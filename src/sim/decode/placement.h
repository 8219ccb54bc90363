// Places a module's variables and parameters.
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

// A module's variables in global memory, by name.
using VariableTable = std::map<std::string, VariableInfo, std::less<>>;

// Sets the offsets of a kernel's parameters.
void place_kernel_params(const ptx::Function&, KernelInfo&);

// Adds .local variables and, for an entry, its parameters. Sets the size and alignment of the code's
// local memory.
void place_locals(const ptx::Function&, const KernelInfo*, Names&, Code&);

// Places the rows of the .param variables of a .func and of its calls. Returns the bytes of frame
// that they take, starting at `base`. Variables of calls that are not live at the same time share
// rows.
std::uint32_t place_rows(const ptx::Function&, std::uint32_t base, Names&, Code&);

// Adds a code address for each function of the module.
void add_functions(const ptx::Module&, SymbolTable&);

struct SharedLayout {
  std::uint32_t static_bytes = 0;    // of variables with a size
  std::uint32_t dynamic_offset = 0;  // of those without a size
};
// Places the .shared variables that the functions declare or name.
SharedLayout place_shared(const ptx::Module&, const std::vector<const ptx::Function*>&,
                          SymbolTable&);

}  // namespace assay::sim
