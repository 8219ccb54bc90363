#include "session/runner_steps.h"

#include <algorithm>

#include "spec/spec.h"

namespace assay::session {

std::vector<cells::SharedBuild> RunnerSteps::builds_for(const std::string& challenge,
                                                        bool own_tests) {
  std::vector<cells::SharedBuild> builds =
      runners_.front()->shared_builds(spec_named(specs_, challenge), own_tests);
  for (cells::SharedBuild& build : builds) build.name = challenge + ": " + build.name;
  return builds;
}

CellResult RunnerSteps::check(const Submission& submission, std::size_t place) {
  return runners_[place]->check(spec_named(specs_, submission.challenge), submission);
}

void RunnerSteps::run_own_tests(const Submission& submission, CellResult& cell, std::size_t jobs) {
  runners_.front()->run_own_tests(spec_named(specs_, submission.challenge), submission, cell, jobs);
}

void RunnerSteps::time_together(std::span<CellResult> cells, std::size_t place) {
  runners_[place]->time_together(spec_named(specs_, cells.front().key.challenge), cells);
}

void RunnerSteps::run_exclusive(CellResult& cell, std::size_t place) {
  runners_[place]->run_exclusive(spec_named(specs_, cell.key.challenge), cell);
}

double expected_seconds(const Scoreboard& board, const Submission& submission,
                        std::size_t source_bytes) {
  constexpr double kToCompile = 1e-4;  // seconds per byte, roughly
  constexpr double kUnknown = 1000;    // longer than any known time
  const double compiling = kToCompile * static_cast<double>(source_bytes);
  double longest = 0;
  for (const auto& [key, entry] : board.entries) {
    if (key.challenge != submission.challenge || key.device != submission.device()) continue;
    if (key.model == submission.model && key.attempt == submission.attempt)
      return compiling + entry.seconds;
    longest = std::max(longest, entry.seconds);
  }
  return compiling + (longest > 0 ? longest : kUnknown);
}

}  // namespace assay::session
