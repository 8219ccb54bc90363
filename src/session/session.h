// One run: every submission checked, timed and handed on, in the order planned.
//
//   the first answer alone -> answers on the simulator, several at a time -> batches of the others
//
// An answer that is timed, in C++ or on a real GPU, goes through three stages: checked, while what
// its challenge needs is built, its own tests tried, timed. The first two use all jobs; timing has
// the machine to itself. What a challenge needs is built when its turn comes.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "assay/results.h"
#include "cells/shared_build.h"
#include "session/order.h"

namespace assay::session {

// The work on cells. What a step throws ends the cells it was about, and no others.
class Steps {
 public:
  virtual ~Steps() = default;

  // What answers to the challenge share: baselines and, where own tests are tried, their subjects.
  // These may run beside each other and beside check().
  virtual std::vector<cells::SharedBuild> builds_for(const std::string& challenge,
                                                     bool own_tests) = 0;

  // Builds it and runs its untimed cases; on the simulated GPU all of them.
  virtual CellResult check(const Submission&) = 0;
  // On up to `jobs` threads.
  virtual void run_own_tests(const Submission&, CellResult&, std::size_t jobs) = 0;
  // Answers to one challenge, in common rounds. Nothing else runs at the same time.
  virtual void time_together(std::span<CellResult>) = 0;
  virtual void run_exclusive(CellResult&) = 0;
};

// Takes finished cells: each once, one call at a time. What it throws ends the run.
using Sink = std::function<void(CellResult)>;

// Is told what is being done, from several threads at once. It lasts as long as what is returned.
using Activity = std::shared_ptr<void>;
using Watcher = std::function<Activity(const std::string& what)>;

void run(const Order&, std::size_t jobs, Steps&, const Sink&, const Watcher&);

}  // namespace assay::session
