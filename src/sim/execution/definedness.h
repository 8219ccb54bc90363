// Tracks values from memory that nothing has written, and what they decide.
//
// Reading such bytes is not a fault: programs copy structures with padding between members, and
// read beyond the end of a tile without using the data. So undefinedness travels with values, bit
// by bit, as in Memcheck (Seward and Nethercote, "Using Valgrind to detect undefined value errors
// with bit-precision", USENIX 2005). It is a finding when an undefined value decides something: a
// branch, an address, the result of an atomic operation, a barrier, printed output; and when the
// host reads what such stores have left (except for a few bytes, which may be padding).
//
// A warp pays for this only once it has read undefined bytes: from then on its registers have
// shadows and each instruction is examined. If an instruction moves bits, its handler moves the
// shadows too. Other handlers run several times with the undefined bits changed, and whatever
// changes in the result is undefined. Arithmetic has simple rules. Once no shadow has a bit left,
// the warp is as fast as before.
#pragma once

#include <cstdint>

#include "sim/execution/block_run.h"
#include "sim/memory/checker.h"

namespace assay::sim {

// The executing instruction read undefined bytes in these lanes.
void note_undefined(WarpRun&, const WarpAccess&, std::uint32_t lanes, bool shared);

// Continues after `in`, where note_undefined() or note_absent_sources() left the block, with the rest
// of the basic block. `mask`: the fragment's lanes.
void run_after_undefined(WarpRun&, const Code&, const Block&, const Instr& in, std::uint32_t mask);

// Runs all handlers of a basic block in a tainted warp.
void run_tainted(WarpRun&, const Code&, const Block&, const Instr* from, std::uint32_t mask);

// Reports that an undefined value decides something in these lanes.
void report_undefined(WarpRun&, UndefinedUse, std::uint32_t lanes);

// Clears the shadow of a frame in a tainted warp.
void clear_shadow(Frame&);

// Local memory. Offsets are in a lane's bytes.
void set_local_undefined(WarpRun&, std::uint64_t offset, unsigned lane, std::uint32_t bits,
                         std::uint32_t bytes);
std::uint32_t local_undefined_bytes(const WarpRun&, std::uint64_t offset, unsigned lane,
                                    std::uint32_t bytes);

}  // namespace assay::sim
