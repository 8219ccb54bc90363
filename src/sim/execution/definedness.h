// Which values come from memory that nothing has written, and what they decide.
//
// Reading such bytes is no fault: programs copy structures with padding between their members, and
// read behind the end of a tile what they then do not use. So undefinedness goes along with values,
// bit by bit, as in Memcheck (Seward and Nethercote, "Using Valgrind to detect undefined value
// errors with bit-precision", USENIX 2005). It is a finding when an undefined value decides
// something: a branch, an address, what an atomic operation computes, a barrier, what is printed;
// and when the host reads what such stores have left (but for a few bytes, which may be padding).
//
// A warp pays for that only from the moment when it reads undefined bytes: registers have shadows
// then, and each instruction is looked at. Where an instruction moves bits, its handler moves the
// shadows too; of others the handler runs several times, on undefined bits that are changed, and
// what changes in the result is undefined; for arithmetic there are simple rules. Once no shadow
// has a bit left the warp is as fast as before.
#pragma once

#include <cstdint>

#include "sim/execution/block_run.h"
#include "sim/memory/checker.h"

namespace assay::sim {

// The instruction in execution read undefined bytes in these lanes.
void note_undefined(WarpRun&, const WarpAccess&, std::uint32_t lanes, bool shared);

// Goes on behind `in`, after which the block was left because of note_undefined(), with the rest of
// the basic block; `mask`: the fragment's lanes.
void run_after_undefined(WarpRun&, const Code&, const Block&, const Instr& in, std::uint32_t mask);

// All of a basic block's handlers in a warp that is tainted.
void run_tainted(WarpRun&, const Code&, const Block&, const Instr* from, std::uint32_t mask);

// A finding: an undefined value in these lanes decides something.
void report_undefined(WarpRun&, UndefinedUse, std::uint32_t lanes);

// The shadow of a frame in a tainted warp, without undefined bits.
void clear_shadow(Frame&);

// Local memory. Offsets are those of a lane's bytes.
void set_local_undefined(WarpRun&, std::uint64_t offset, unsigned lane, std::uint32_t bits,
                         std::uint32_t bytes);
std::uint32_t local_undefined_bytes(const WarpRun&, std::uint64_t offset, unsigned lane,
                                    std::uint32_t bytes);

}  // namespace assay::sim
