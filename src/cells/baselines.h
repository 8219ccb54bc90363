// The challenge's own implementations: naive and par as libraries, and what their kernels do on the
// simulated GPU.
#pragma once

#include <filesystem>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "assay/case.h"
#include "cases/time_account.h"
#include "cases/timing.h"
#include "cells/run_options.h"
#include "records/simulated_work.h"

namespace assay::cells {

// May be asked by several threads at once.
class Baselines {
 public:
  Baselines(const cases::World& world, const RunOptions& options, cases::SharedAccount& account)
      : world_(world), options_(options), account_(account) {}

  // Where a file such as naive.cpp lies: among the challenge's baselines, but for "par.cu", which
  // is kernels/NAME.cu beside challenges/.
  static std::filesystem::path path(const ChallengeSpec&, const std::string& file);

  // The library of such a file. Throws Error when it does not compile.
  std::filesystem::path library(const ChallengeSpec&, const std::string& file) const;
  cases::BaselineLibraries libraries(const ChallengeSpec&, Language) const;  // of naive and par

  // What the kernels of a file such as naive.cu do in a case; nothing where the challenge has no
  // such file. Found out once and kept for later runs; other callers wait for that. Throws Error
  // when the case fails.
  std::optional<SimulatedWork> work(const ChallengeSpec&, const std::string& file,
                                    const std::string& case_name);

 private:
  SimulatedWork simulate(const ChallengeSpec&, const std::string& file,
                         const std::string& case_name) const;

  const cases::World& world_;
  const RunOptions& options_;
  cases::SharedAccount& account_;
  std::mutex mutex_;
  std::map<std::string, std::shared_future<SimulatedWork>> work_;  // by challenge, file, case
};

}  // namespace assay::cells
