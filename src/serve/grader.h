// How one request is graded for real: stage by stage as `assay grade` does it, beside others but
// for timing.
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
  // Makes the first builder, and throws Error where none can be made. The specs must outlive it.
  Grader(std::span<const ChallengeSpec>, GraderSettings);

  // See Grade in service.h. The thread is held to one core but while it times, when it has all.
  Json grade(const GradeRequest&, const std::function<void(check::Stage)>& on_stage);

  bool has_cuda();
  // All that a result depends on beside the request: version, compiler, machine, isolation.
  std::string identity();

 private:
  std::shared_ptr<Builder> builder();
  // Throws Error where nothing compiles here: what was refused says nothing of the answer then.
  void check_builder(Builder&);

  const std::span<const ChallengeSpec> specs_;
  const GraderSettings settings_;
  TimingGate gate_;
  std::mutex mutex_;
  std::shared_ptr<Builder> builder_;
  int uses_ = 0;
  double checked_ = 0;  // of the steady clock
};

}  // namespace assay::serve
