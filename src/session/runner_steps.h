// A session's steps, implemented by CellRunners.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cells/cell.h"
#include "session/session.h"

namespace assay::session {

class RunnerSteps final : public Steps {
 public:
  // The runners of the places; at least one. They and the specs must outlive it. `specs` must hold
  // every challenge that is asked about.
  RunnerSteps(std::vector<cells::CellRunner*> runners, const std::vector<ChallengeSpec>& specs)
      : runners_(std::move(runners)), specs_(specs) {}

  std::vector<cells::SharedBuild> builds_for(const std::string& challenge, bool own_tests) override;
  std::size_t places() const override { return runners_.size(); }
  CellResult check(const Submission&, std::size_t place) override;
  void run_own_tests(const Submission&, CellResult&, std::size_t jobs) override;
  void time_together(std::span<CellResult>, std::size_t place) override;
  void run_exclusive(CellResult&, std::size_t place) override;

 private:
  std::vector<cells::CellRunner*> runners_;
  const std::vector<ChallengeSpec>& specs_;
};

// The time that a submission is expected to take: what it took when it was last on the board, else
// what the longest answer to its challenge took, or longer than any if there is neither.
// `source_bytes`: size of what must be compiled for it, that is, the implementations that its own
// tests are tried on.
double expected_seconds(const Scoreboard&, const Submission&, std::size_t source_bytes);

}  // namespace assay::session
