// What every exported function does around its own work: it injects faults, checks the state that
// the driver and the context must be in, and turns exceptions into codes. Calls from several
// threads take turns.
#pragma once

#include <mutex>
#include <optional>

#include "support/cuda_double/exports.h"
#include "support/cuda_double/simulated_gpu.h"

namespace assay::gpu {

enum class Needs {
  nothing,  // works before cuInit
  driver,   // cuInit
  context,  // a context that is current in this thread and not broken
};

// Holds the driver's lock for its lifetime.
class Call {
 public:
  // Never returns if the call is to hang.
  Call(const char* function, Needs needs);

  // The code to return at once, without doing anything, if any.
  std::optional<CUresult> refusal() const { return refusal_; }
  SimulatedGpu& gpu() const;

 private:
  std::unique_lock<std::mutex> lock_;
  std::optional<CUresult> refusal_;
};

// The current context of this thread.
CUcontext current_context();
void set_current_context(CUcontext);

// The code for the exception being handled. Prints on stderr what the code does not tell.
CUresult code_of_exception(const char* function);

// `action` takes the SimulatedGpu and returns the CUresult. `function` is __func__.
template <class Action>
CUresult call(const char* function, Needs needs, Action action) {
  const Call entered(function, needs);
  if (entered.refusal()) return *entered.refusal();
  try {
    return action(entered.gpu());
  } catch (...) {
    return code_of_exception(function);
  }
}

}  // namespace assay::gpu
