// Calls of .func functions: frames, parameters and results.
#pragma once

#include <cstdint>

#include "sim/execution/block_run.h"

namespace assay::sim {

// Code addresses, as held in function pointers: kCodeBase + 16 * the function's index in its
// module.
inline constexpr std::uint64_t kCodeBase = 0x3000'0000'0000;

// A thread's local memory, including its call stack: CUDA's maximum.
inline constexpr std::uint32_t kMaxLocalBytes = 512 << 10;
inline constexpr std::uint32_t kMaxCallDepth = 4096;

// A call in Code::extra, from Instr::aux: the callee's index in Program::codes (direct), the number
// of parameters, their row offsets in the caller's frame, the number of results, their row offsets.
// Flow::call_indirect: Instr::a is the slot of the 64-bit function address.

// Moves the fragment into the callee; for an indirect call, splits its lanes by callee.
void call_function(WarpRun&, Fragment&, const Instr&);

// These lanes of the fragment return or, in an entry, exit. True: the fragment is gone.
bool return_lanes(WarpRun&, Fragment&, std::uint32_t lanes);

}  // namespace assay::sim
