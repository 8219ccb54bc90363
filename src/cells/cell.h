// One cell of the board: a submission is built, checked and timed; on the simulated GPU its work is
// counted instead of timed. Grading comes later and is pure.
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

// The cases that show whether an example gets the verdict its name states: for a wrong one, the
// cases it names, and with every_case all correctness cases too. A slow one must pass those, and a
// cheat may need them to prepare its attack on the case it names. Timed as in a quick run.
cases::CaseFilter cases_for(const Example&, bool every_case);

class CellRunner {
 public:
  CellRunner(cases::World world, RunOptions options)
      : world_(std::move(world)), options_(std::move(options)) {}
  CellRunner(const CellRunner&) = delete;  // its members refer to it
  CellRunner& operator=(const CellRunner&) = delete;

  // Builds what check() runs. The record says so if the submission was rejected or does not
  // compile.
  BuildResult build(const ChallengeSpec&, const Submission&);
  // Steps of a cell. The first two may run in several threads at once; timing must run alone. A
  // fault of the harness (any exception) becomes the verdict harness_error in cell.build. A step
  // that hits a TransientFault is retried once, and cells that cannot be timed together are timed
  // one by one; cell.faults then says so. check() builds and runs the untimed cases; on the
  // simulated GPU, all cases. The timed cases then hold the work of the submission's kernels and,
  // if the challenge has them, that of naive.cu and par.cu on an input drawn the same way. On a
  // real GPU, that of the options.
  CellResult check(const ChallengeSpec&, const Submission&);
  bool tries_own_tests() const;  // false in a partial run
  // On up to `jobs` threads.
  void run_own_tests(const ChallengeSpec&, const Submission&, CellResult&, std::size_t jobs);
  // Runs the timed cases of several submissions to one challenge on one device, in shared rounds.
  void time_together(const ChallengeSpec&, std::span<CellResult> cells);
  void run_exclusive(const ChallengeSpec&, CellResult&);  // the exclusive cases

  // The builds that timed submissions to one challenge share: the baselines and, with own_tests,
  // the implementations on which own tests run. In CUDA if the options name a real GPU, else in
  // C++. The first user builds them; building them in advance spares that wait. They may run in any
  // order and concurrently; the spec must outlive them.
  std::vector<SharedBuild> shared_builds(const ChallengeSpec&, bool own_tests);
  // Of these, only naive and par, in that language.
  std::vector<SharedBuild> baseline_builds(const ChallengeSpec&, Language);

  // The same steps for an example, with the cases of cases_for(). A wrong one that is not timed is
  // compiled with less optimisation, to save time.
  BuildResult build_example(const ChallengeSpec&, const Example&);
  CellResult check_built(const ChallengeSpec&, const BuildResult&, const cases::CaseFilter&);
  // check() without the build, for the cases that the filter accepts.
  CellResult check_built_on(Device, const ChallengeSpec&, const BuildResult&,
                            const cases::CaseFilter&);
  // A cell for this build, without cases: it can be timed without being checked first.
  CellResult begin_cell(const ChallengeSpec&, const BuildResult&);
  // The same for a CUDA example, on the simulated GPU.
  CellResult simulate_built(const ChallengeSpec&, const BuildResult&, const cases::CaseFilter&);
  // Times examples that use the same filter, so that they share the rounds of naive and par.
  void time_examples(const ChallengeSpec&, std::span<CellResult>, const cases::CaseFilter&);

  cases::TimeAccount account() const { return account_.total(); }

 private:
  // On the simulated or the real GPU.
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
