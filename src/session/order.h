// The order in which a run processes its submissions. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "submission/submission.h"

namespace assay::session {

// Answers to one challenge, timed in common rounds.
using Group = std::vector<const Submission*>;

// Most answers timed together: each has a worker with memory of its own.
inline constexpr std::size_t kMostTogether = 4;

struct Order {
  // One answer, processed alone first, so that the user sees a result quickly. Null if none is
  // timed.
  const Submission* first = nullptr;
  // Answers on the simulated GPU, whose results no other load affects. The longest come first,
  // because one long cell at the end would keep one core busy and the others idle. If no answer
  // goes before them, the shortest does.
  std::vector<const Submission*> simulated;
  // The other answers, which are timed, challenge by challenge. All of a batch are checked before
  // any of it is timed. Batches are large enough to keep all cores busy, but a kill loses what is
  // checked and not yet timed.
  std::vector<std::vector<Group>> batches;
};

// `seconds`: the expected time of each submission. The submissions must outlive the order.
Order plan_order(const std::vector<Submission>&, std::size_t jobs,
                 const std::function<double(const Submission&)>& seconds);

}  // namespace assay::session
