// Divergence: selects, splits, merges and ends the fragments of a warp.
#pragma once

#include <cstdint>

#include "sim/execution/block_run.h"

namespace assay::sim {

// Those of `lanes` for which the guard of `in` is true.
inline std::uint32_t guarded(const Warp& w, const Instr& in, std::uint32_t lanes) {
  if (in.guard < 0) return lanes;
  const std::uint32_t p = w.preds[in.guard];
  return lanes & (in.guard_negated ? ~p : p);
}

// The fragment to run, merged with others at the same place; Warp::limit gets the key of the next.
// Null if none is ready.
Fragment* select_fragment(WarpRun&);

// Adds a ready fragment like `f` with some of its lanes, at another block; `f` keeps the rest.
void split_off(WarpRun&, Fragment& f, std::uint32_t lanes, std::uint32_t block);

// Splits `f` in two: it keeps the lanes of the lower block, a new fragment gets the others.
void diverge(WarpRun&, Fragment& f, std::uint32_t taken, std::uint32_t target, std::uint32_t next);

// Removes the lanes from the frame, which is free after the last.
inline void leave_frame(WarpRun& w, Frame& frame, std::uint32_t lanes) {
  const bool was_used = frame.lanes != 0;
  frame.lanes &= ~lanes;
  if (was_used && frame.lanes == 0 && frame.parent != nullptr) w.free_frames.push_back(&frame);
}

// The lanes exit. True if that was the fragment's last lane, so that it is gone.
bool exit_lanes(WarpRun&, Fragment&, std::uint32_t lanes);

// Called before a .sync instruction: whether all lanes of its mask are here. False: the fragment
// waits.
bool meet(WarpRun&, Fragment&, const Block&);
// Releases the waiting fragments whose lanes are all waiting; false if there are none.
bool resolve_meetings(WarpRun&);
// The lanes named in a waiting fragment's masks that have not exited and do not wait with it.
std::uint32_t missing_lanes(WarpRun&, const Fragment&);

}  // namespace assay::sim
