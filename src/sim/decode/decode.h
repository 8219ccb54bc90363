// Turns a parsed module into runnable programs.
#pragma once

#include <memory>

#include "sim/decode/placement.h"
#include "sim/execution/program.h"

namespace assay::sim {

// The kernel and every function that it may call. `variables` are the module's in global memory.
// Throws Unsupported, naming the instruction, the kernel and the source line. An unsupported
// function that only a pointer can reach is refused when it is called.
std::unique_ptr<Program> build_program(const ptx::Module&, const VariableTable& variables,
                                       const ptx::Function& entry);

// What is known of a kernel without its instructions, for kernels that build_program() refuses: a
// program without code, with as many registers as a thread can have.
std::unique_ptr<Program> outline_program(const ptx::Module&, const ptx::Function& entry);

}  // namespace assay::sim
