// Empty kernels by CUDA's driver alone, in this process.
#pragma once

#include <memory>
#include <string>

namespace assay {

class BareDriver {
 public:
  // `library` is a path, or a name that the dynamic linker knows. These throw gpu::DriverError.
  explicit BareDriver(const std::string& library);
  ~BareDriver();

  // Of the GPU, from before the first launch to behind the last. `held`: the stream waits until all
  // are in it.
  double seconds(int launches, bool held);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace assay
