// The challenge's own implementations: naive and par as libraries, and the work of their kernels on
// the simulated GPU.
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

// Thread-safe.
class Baselines {
 public:
  Baselines(const cases::World& world, const RunOptions& options, cases::SharedAccount& account)
      : world_(world), options_(options), account_(account) {}

  // The path of a file such as naive.cpp: in the challenge's baselines/, except "par.cu", which is
  // kernels/NAME.cu beside challenges/.
  static std::filesystem::path path(const ChallengeSpec&, const std::string& file);

  // The library built from such a file. Throws Error if there is none, with the compiler's words.
  std::filesystem::path library(const ChallengeSpec&, const std::string& file) const;
  cases::BaselineLibraries libraries(const ChallengeSpec&, Language) const;  // of naive and par

  // The work of the kernels of a file such as naive.cu in a case; nothing if the challenge has no
  // such file. Computed once and kept for later runs; concurrent callers wait for it. Throws Error
  // if the case fails.
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
