// How undefined bits propagate through an instruction: see sim/execution/definedness.h.
#pragma once

#include "sim/execution/program.h"
#include "sim/ptx/ast.h"

namespace assay::sim {

// The rule for an instruction of this class. The default: the whole result is undefined if any
// source is.
Spread spread_of(const ptx::Instruction&, InstrClass);

}  // namespace assay::sim
