// Grades one request stage by stage, as `assay grade` does. Only timing excludes other work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "build/builder.h"
#include "serve/grade_request.h"
#include "serve/timing_gate.h"

namespace assay::serve {

struct GraderSettings {
  sandbox::Tier tier = sandbox::Tier::none;
  unsigned simulator_threads = 1;
  Machine machine;
  std::string assay_version, assay_commit;
  std::function<std::unique_ptr<Builder>()> make_builder;
  std::function<std::uint64_t()> random_seed;
};

// Thread-safe.
class Grader {
 public:
  // Makes the first builder; throws Error if that fails. The specs must outlive it.
  Grader(std::span<const ChallengeSpec>, GraderSettings);

  // See Grade in service.h. The calling thread is held to one core except during timing, when it
  // has all of them.
  Json grade(const GradeRequest&, const std::function<void(check::Stage)>& on_stage);

  bool has_cuda();
  // Everything that a result depends on besides the request: version, compiler, machine, isolation.
  std::string identity();

 private:
  std::shared_ptr<Builder> builder();
  // Throws Error if nothing compiles here: a refused build then says nothing about the answer.
  void check_builder(Builder&);

  const std::span<const ChallengeSpec> specs_;
  const GraderSettings settings_;
  TimingGate gate_;
  std::mutex mutex_;
  std::shared_ptr<Builder> builder_;
  int uses_ = 0;
  double checked_ = 0;  // on the steady clock
};

}  // namespace assay::serve
