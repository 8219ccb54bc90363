// From a parsed module to programs that run.
#pragma once

#include <memory>

#include "sim/decode/placement.h"
#include "sim/execution/program.h"

namespace assay::sim {

// The kernel and every function that it may call. `variables` are the module's in global memory.
// Throws Unsupported, naming the kernel, the source line and the instruction.
std::unique_ptr<Program> build_program(const ptx::Module&, const VariableTable& variables,
                                       const ptx::Function& entry);

}  // namespace assay::sim
