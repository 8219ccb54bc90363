// Divergence: choosing, splitting, merging and ending the fragments of a warp.
#pragma once

#include <cstdint>

#include "sim/execution/block_run.h"

namespace assay::sim {

// The lanes of `lanes` for which the guard of `in` is true.
inline std::uint32_t guarded(const Warp& w, const Instr& in, std::uint32_t lanes) {
  if (in.guard < 0) return lanes;
  const std::uint32_t p = w.preds[in.guard];
  return lanes & (in.guard_negated ? ~p : p);
}

// The fragment to run, merged with those at the same place, and the key of the next in Warp::limit.
// Null if none is ready.
Fragment* select_fragment(WarpRun&);

// Adds a ready fragment like `f` of some of its lanes at another block; `f` keeps the rest.
void split_off(WarpRun&, Fragment& f, std::uint32_t lanes, std::uint32_t block);

// `f`'s lanes go two ways: it keeps those of the lower block, a new fragment has the others.
void diverge(WarpRun&, Fragment& f, std::uint32_t taken, std::uint32_t target, std::uint32_t next);

// The lanes are no longer in the frame, which is free after the last.
inline void leave_frame(WarpRun& w, Frame& frame, std::uint32_t lanes) {
  const bool was_used = frame.lanes != 0;
  frame.lanes &= ~lanes;
  if (was_used && frame.lanes == 0 && frame.parent != nullptr) w.free_frames.push_back(&frame);
}

// The lanes exit; the fragment disappears with its last lane (then true).
bool exit_lanes(WarpRun&, Fragment&, std::uint32_t lanes);

// Before a .sync instruction: whether all lanes of its mask are here. False: the fragment waits.
bool meet(WarpRun&, Fragment&, const Block&);
// Lets those waiting fragments go whose lanes are all waiting; false if there are none.
bool resolve_meetings(WarpRun&);
// The lanes that a waiting fragment's masks name, that have not exited and do not wait with it.
std::uint32_t missing_lanes(WarpRun&, const Fragment&);

}  // namespace assay::sim
