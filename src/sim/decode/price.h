// Instruction costs: how many machine instructions a GPU of the Volta generation or later needs at
// least for each, and which units they occupy. Every PTX instruction occupies the issue stage at
// least once, so nothing is free.
//
// PTX is not machine code. 64-bit integers are processed in halves; divisions, square roots and
// similar are short programs (CUDA C++ Programming Guide, "Arithmetic Instructions"; the counts
// here are for the shortest path through them). The pipe that an instruction takes: Nsight Compute,
// "Metrics Decoder", "Pipelines".
#pragma once

#include "sim/execution/program.h"
#include "sim/ptx/ast.h"

namespace assay::sim {

InstrPrice price_of(const ptx::Instruction&, InstrClass);

// The work of a whole warp instruction, its matrix operations included.
UnitWork work_of(const InstrInfo&);

}  // namespace assay::sim
