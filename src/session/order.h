// In which order the submissions of a run are dealt with. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "submission/submission.h"

namespace assay::session {

// Answers to one challenge, timed in common rounds.
using Group = std::vector<const Submission*>;

// At most so many: each has a worker with memory of its own.
inline constexpr std::size_t kMostTogether = 4;

struct Order {
  // One answer, alone: the first result shall be on the screen soon. Null when none is timed.
  const Submission* first = nullptr;
  // Answers on the simulated GPU, which nothing disturbs: those that take longest first, because
  // one long cell at the end would keep one core busy and the others idle. Where none goes before
  // them, the shortest does.
  std::vector<const Submission*> simulated;
  // The other answers, which are timed, challenge by challenge. Of each batch all are checked
  // before one is timed: large enough to keep all cores busy; what is checked and not yet timed is
  // lost to a kill.
  std::vector<std::vector<Group>> batches;
};

// `seconds`: what each is expected to take. The submissions must outlive the order.
Order plan_order(const std::vector<Submission>&, std::size_t jobs,
                 const std::function<double(const Submission&)>& seconds);

}  // namespace assay::session
