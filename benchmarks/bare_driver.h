// Launches empty kernels with CUDA's driver alone, in this process.
#pragma once

#include <memory>
#include <string>

namespace assay {

class BareDriver {
 public:
  // `library` is a path, or a name that the dynamic linker finds. Both functions throw
  // gpu::DriverError.
  explicit BareDriver(const std::string& library);
  ~BareDriver();

  // The GPU's time from before the first launch until after the last. `held`: the stream waits
  // until all launches are queued.
  double seconds(int launches, bool held);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay
