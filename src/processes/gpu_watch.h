// The state of the real GPU while it is in use, as a separate process reports it: the harness
// itself loads no NVIDIA library.
#pragma once

#include <chrono>
#include <string>

#include "assay/gpu_state.h"
#include "processes/channel.h"
#include "sandbox/sandbox.h"

namespace assay::processes {

class GpuWatch {
 public:
  // `management` is the path or name of NVIDIA's management library; `pci_bus_id` is GpuMachine's.
  // Throws Error if the process cannot be made. A missing library or GPU is only reported by the
  // first state().
  GpuWatch(const std::string& management, const std::string& pci_bus_id);

  // Throws Error if the process has died (with its output) or does not answer in time. It is then
  // killed, and every later call throws too.
  GpuState state(std::chrono::milliseconds patience = std::chrono::seconds{10});

 private:
  // Reads up to the end of a line.
  std::string answer(std::chrono::milliseconds patience);
  [[noreturn]] void fail(const std::string& why);
  std::string how_it_ended();

  Channel line_, text_;
  sandbox::Process process_;
  std::string failed_;  // why nothing more can be asked, or ""
};

}  // namespace assay::processes
