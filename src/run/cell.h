// One cell of the board: a submission built, checked and timed, or in CUDA simulated. Grading comes after and is pure.
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "assay/results.h"
#include "build/builder.h"
#include "results/simulated_work.h"
#include "run/correctness.h"
#include "run/examples.h"
#include "run/timing.h"
#include "submission/submission.h"

namespace assay::run {

struct RunOptions {
  sandbox::Tier tier = sandbox::Tier::none;
  std::uint64_t seed = 0;
  CaseFilter filter;
  unsigned simulator_threads = 1;  // of each simulated device
};

// What shows whether an example earns what its name states: of a wrong one the cases that it names;
// with every_case all that make correctness too. A slow one must pass these, and a cheat may need them
// to prepare what it does in the one it names. Timed as in a quick run.
CaseFilter cases_for(const Example&, bool every_case);

class CellRunner {
 public:
  CellRunner(Builder& builder, RunOptions options) : builder_(builder), options_(options) {}

  // Steps of a cell. The first two may run in several threads at once, timing must be alone. Faults
  // of the harness become the verdict harness_error in cell.build.
  // Build, untimed cases; of a submission in CUDA all cases, on a simulated device. The timed ones then hold what its
  // kernels do and, where the challenge has them, what those of naive.cu and par.cu do on an input drawn alike.
  CellResult check(const ChallengeSpec&, const Submission&);
  void run_own_tests(const ChallengeSpec&, const Submission&, CellResult&);
  // The timed cases of several answers to one challenge, in common rounds.
  void time_together(const ChallengeSpec&, std::span<CellResult> cells);
  void run_exclusive(const ChallengeSpec&, CellResult&);  // the exclusive cases

  // Builds naive and par so that later cells need not wait. Throws Error if one does not compile.
  Baselines baselines(const ChallengeSpec&);

  // The same steps for an example, with the cases of cases_for(). A wrong one that is not timed
  // is compiled quickly rather than well.
  BuildResult build_example(const ChallengeSpec&, const Example&);
  CellResult check_built(const ChallengeSpec&, const BuildResult&, const CaseFilter&);
  void time_example(const ChallengeSpec&, CellResult&, const CaseFilter&);

  TimeAccount account() const;

 private:
  BuildResult build(const ChallengeSpec&, const Submission&);
  CellResult new_cell(const ChallengeSpec&, const BuildResult&) const;
  CellResult simulate_built(const ChallengeSpec&, const BuildResult&);
  WorkerSettings simulator_settings(const ChallengeSpec&,
                                    const std::filesystem::path& library) const;
  SimulatedWork simulate_baseline(const ChallengeSpec&, const std::string& file,
                                  const std::string& case_name);
  std::optional<SimulatedWork> baseline_work(const ChallengeSpec&, const std::string& file,
                                             const std::string& case_name);
  void time_together(const ChallengeSpec&, std::span<CellResult> cells, const CaseFilter&);
  void run_exclusive(const ChallengeSpec&, CellResult&, const CaseFilter&);
  double time_pace(const ChallengeSpec&, const std::string& of);
  CaseResult run_alone(const ChallengeSpec&, const CaseSpec&, const std::filesystem::path& library);
  std::filesystem::path library_of(const ChallengeSpec&, const CellResult&) const;
  std::filesystem::path baseline(const ChallengeSpec&, const std::string& file);
  WorkerSettings worker_settings(const ChallengeSpec&, const std::filesystem::path& library) const;
  void add(const TimeAccount&);

  Builder& builder_;
  RunOptions options_;
  mutable std::mutex mutex_;
  TimeAccount account_;
  std::map<std::string, std::filesystem::path> libraries_;  // of checked cells, by source hash
  std::mutex baselines_mutex_;
  std::map<std::string, std::shared_future<SimulatedWork>> baselines_;  // by challenge, file, case
};

}  // namespace assay::run
