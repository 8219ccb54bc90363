// What instructions cost: how many machine instructions a GPU of the Volta line and after needs for
// each, at least, and which units they occupy. Every PTX instruction occupies the issue stage once
// at least, so nothing is free.
//
// PTX is not machine code. 64-bit integers go in halves; a division, a square root and their kin
// are short programs (CUDA C++ Programming Guide, "Arithmetic Instructions"; the counts here are
// those of the shortest way through them). Which pipe an instruction takes: Nsight Compute,
// "Metrics Decoder", "Pipelines".
#pragma once

#include "sim/execution/program.h"
#include "sim/ptx/ast.h"

namespace assay::sim {

InstrPrice price_of(const ptx::Instruction&, InstrClass);

// Of a whole warp instruction, its matrix operations included.
UnitWork work_of(const InstrInfo&);

}  // namespace assay::sim
