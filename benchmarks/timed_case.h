// One timed case in this process, and the implementations that compete in it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "assay/case.h"
#include "assay/challenge.h"
#include "processes/layout.h"
#include "support/direct_call.h"

namespace assay {

// The inputs of a case, filled once; all contestants share its buffers.
class TimedCase {
 public:
  TimedCase(const ChallengeSpec&, const CaseSpec&, std::uint64_t seed);

  const CasePlan& plan() const { return plan_; }
  BufferViews buffers() const { return buffers_; }
  std::string shape() const { return challenge_.shape(spec_); }
  std::optional<LeastWork> least_work() const { return challenge_.least_work(spec_, plan_); }

  // Runs all phases of the case with an implementation (a handle from dlopen) and returns the
  // seconds of the timed phase without callbacks. Caches are flushed before that phase. Throws
  // Error unless the status is the expected one.
  double run(void* library, int threads);

  // Poisons the outputs and runs the phases before the timed one.
  void set_up(void* library, int threads);
  // The result of the challenge's check on the current outputs.
  CheckResult check() const;

 private:
  void run_phase(testing::DirectCall&, int phase);

  const Challenge& challenge_;
  worker::Adapter adapter_;
  CaseSpec spec_;
  CasePlan plan_;
  processes::Layout layout_;
  testing::Arena input_, output_;
  std::vector<BufferView> buffers_;
  std::unique_ptr<Reference> reference_;
  std::unique_ptr<CallbackServer> server_;
};

double seconds_of(const std::function<void()>& work);

struct Contestant {
  std::string name;
  int repetitions;
  std::function<double()> seconds;  // one repetition
  std::vector<double> samples = {};
};

// One warm-up each, then all in rotating order round by round, so that a slow moment of the machine
// affects contestants that are close in time.
void race(std::vector<Contestant>&);

}  // namespace assay
