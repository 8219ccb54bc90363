// Calls of .func functions: frames, parameters and results.
#pragma once

#include <cstdint>

#include "sim/execution/block_run.h"

namespace assay::sim {

// Code addresses, as function pointers hold them: kCodeBase + 16 * index of the function in its
// module.
inline constexpr std::uint64_t kCodeBase = 0x3000'0000'0000;

// Local memory of a thread, its call stack included: CUDA's maximum.
inline constexpr std::uint32_t kMaxLocalBytes = 512 << 10;
inline constexpr std::uint32_t kMaxCallDepth = 4096;

// A call in Code::extra, from Instr::aux: the callee's index in Program::codes (direct), the number
// of parameters, their row offsets in the caller's frame, the number of results, their row offsets.
// Flow::call_indirect: Instr::a is the slot of the 64-bit function address.

// The fragment goes on in the callee; of an indirect call, its lanes part by callee.
void call_function(WarpRun&, Fragment&, const Instr&);

// These lanes of the fragment return; of an entry, they exit. True: the fragment is gone.
bool return_lanes(WarpRun&, Fragment&, std::uint32_t lanes);

}  // namespace assay::sim
