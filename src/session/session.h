// One run: checks, times and hands on every submission, in the planned order.
//
//   the first answer alone -> answers on the simulator, several at a time -> batches of the others
//
// An answer that is timed, in C++ or on a real GPU, goes through three stages: it is checked while
// its challenge's shared builds are made, its own tests are tried, and it is timed. The first two
// stages use all jobs; timing has the machine to itself. Shared builds of a challenge are made when
// its turn comes.
//
// On real GPUs there may be several places to measure at. The groups of a batch are dealt to them,
// and each place times its groups one after the other, beside the other places.
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

// The work on cells. An exception from a step ends only the cells that the step was about.
class Steps {
 public:
  virtual ~Steps() = default;

  // Builds that all answers to the challenge share: the baselines and, if own tests are tried, the
  // implementations to try them on. These may run beside each other and beside check().
  virtual std::vector<cells::SharedBuild> builds_for(const std::string& challenge,
                                                     bool own_tests) = 0;

  // How many groups can be timed at the same time. A place is a number below that.
  virtual std::size_t places() const { return 1; }

  // Builds the submission and runs its untimed cases; on the simulated GPU, all cases.
  virtual CellResult check(const Submission&, std::size_t place) = 0;
  // On up to `jobs` threads.
  virtual void run_own_tests(const Submission&, CellResult&, std::size_t jobs) = 0;
  // Answers to one challenge, in common rounds, at the place that checked them. Nothing else runs
  // there at the same time.
  virtual void time_together(std::span<CellResult>, std::size_t place) = 0;
  virtual void run_exclusive(CellResult&, std::size_t place) = 0;
};

// Receives finished cells and where each was measured, each once, one call at a time. An exception
// from it ends the run.
using Sink = std::function<void(CellResult, std::size_t place)>;

// Called with what is being done, from several threads at once. The activity lasts as long as the
// returned object.
using Activity = std::shared_ptr<void>;
using Watcher = std::function<Activity(const std::string& what)>;

void run(const Order&, std::size_t jobs, Steps&, const Sink&, const Watcher&);

}  // namespace assay::session
