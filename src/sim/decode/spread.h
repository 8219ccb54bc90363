// How undefined bits go through an instruction: see sim/execution/definedness.h.
#pragma once

#include "sim/execution/program.h"
#include "sim/ptx/ast.h"

namespace assay::sim {

// Of an instruction of this class; where nothing better is known, a whole result is undefined if
// any source is.
Spread spread_of(const ptx::Instruction&, InstrClass);

}  // namespace assay::sim
