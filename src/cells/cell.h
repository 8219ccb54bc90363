// One cell of the board: a submission built, checked and timed, or on the simulated GPU checked and
// counted. Grading comes after and is pure.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "assay/results.h"
#include "cases/time_account.h"
#include "cells/baselines.h"
#include "cells/examples.h"
#include "cells/run_options.h"
#include "cells/shared_build.h"
#include "submission/submission.h"

namespace assay::cells {

// What shows whether an example earns what its name states: of a wrong one the cases that it names;
// with every_case all that make correctness too. A slow one must pass these, and a cheat may need
// them to prepare what it does in the one it names. Timed as in a quick run.
cases::CaseFilter cases_for(const Example&, bool every_case);

class CellRunner {
 public:
  CellRunner(cases::World world, RunOptions options)
      : world_(std::move(world)), options_(std::move(options)) {}
  CellRunner(const CellRunner&) = delete;  // what it holds refers to it
  CellRunner& operator=(const CellRunner&) = delete;

  // What check() runs; one that was rejected or does not compile says so in its record.
  BuildResult build(const ChallengeSpec&, const Submission&);
  // Steps of a cell. The first two may run in several threads at once, timing must be alone. Faults
  // of the harness, whatever is thrown, become the verdict harness_error in cell.build. A step that
  // met a TransientFault is tried once more, and who cannot be timed together is timed alone; then
  // cell.faults says so.
  // Build, untimed cases; of a submission on the simulated GPU all cases. The timed ones then hold
  // what its kernels do and, where the challenge has them, what those of naive.cu and par.cu do on
  // an input drawn alike. On a real GPU the options name its driver.
  CellResult check(const ChallengeSpec&, const Submission&);
  bool tries_own_tests() const;  // not in a partial run
  // On up to `jobs` threads.
  void run_own_tests(const ChallengeSpec&, const Submission&, CellResult&, std::size_t jobs);
  // The timed cases of several answers to one challenge on one device, in common rounds.
  void time_together(const ChallengeSpec&, std::span<CellResult> cells);
  void run_exclusive(const ChallengeSpec&, CellResult&);  // the exclusive cases

  // What answers that are timed share, to one challenge: baselines and, with own_tests, what these
  // are tried on; in CUDA where the options name the driver of a real GPU, else in C++. The first
  // user builds them; if they were built before, nobody waits. In any order and several at once;
  // the spec must live as long.
  std::vector<SharedBuild> shared_builds(const ChallengeSpec&, bool own_tests);
  // Of these, naive and par in that language.
  std::vector<SharedBuild> baseline_builds(const ChallengeSpec&, Language);

  // The same steps for an example, with the cases of cases_for(). A wrong one that is not timed
  // is compiled quickly rather than well.
  BuildResult build_example(const ChallengeSpec&, const Example&);
  CellResult check_built(const ChallengeSpec&, const BuildResult&, const cases::CaseFilter&);
  // check() without the build, of the cases that the filter takes.
  CellResult check_built_on(Device, const ChallengeSpec&, const BuildResult&,
                            const cases::CaseFilter&);
  // The cell of what was built, without cases: it can be timed though nothing was checked.
  CellResult begin_cell(const ChallengeSpec&, const BuildResult&);
  // Of an example in CUDA, likewise.
  CellResult simulate_built(const ChallengeSpec&, const BuildResult&, const cases::CaseFilter&);
  // Of examples that one filter serves, so that they share the rounds of naive and par.
  void time_examples(const ChallengeSpec&, std::span<CellResult>, const cases::CaseFilter&);

  cases::TimeAccount account() const { return account_.total(); }

 private:
  // On the simulated or the real one.
  CellResult check_on_gpu(Device, const ChallengeSpec& whole, const BuildResult&,
                          const cases::CaseFilter&);
  CellResult new_cell(const ChallengeSpec&, const BuildResult&) const;
  void time_together(const ChallengeSpec&, std::span<CellResult> cells, const cases::CaseFilter&);
  void run_exclusive(const ChallengeSpec&, CellResult&, const cases::CaseFilter&);
  std::filesystem::path library_of(const ChallengeSpec&, const CellResult&) const;
  const Challenge& challenge_of(const ChallengeSpec& spec) const {
    return *world_.challenge(spec.name).challenge;
  }

  const cases::World world_;
  const RunOptions options_;
  cases::SharedAccount account_;
  Baselines baselines_{world_, options_, account_};
  mutable std::mutex mutex_;
  std::map<std::string, std::filesystem::path> libraries_;  // of checked cells, by source hash
};

}  // namespace assay::cells
