// What every exported function does around its own work: faults on purpose, the state that the
// driver and the context must be in, exceptions as codes. Calls of several threads take turns.
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

// Holds the lock of the driver while it lives.
class Call {
 public:
  // Never returns when the call is to hang.
  Call(const char* function, Needs needs);

  // The code that the function returns without doing anything, if so.
  std::optional<CUresult> refusal() const { return refusal_; }
  SimulatedGpu& gpu() const;

 private:
  std::unique_lock<std::mutex> lock_;
  std::optional<CUresult> refusal_;
};

// The current context of this thread.
CUcontext current_context();
void set_current_context(CUcontext);

// The code for the exception that is being handled. Says on stderr what no code tells.
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
