// The state of the real GPU while it is used, as a process of its own tells it: the harness loads
// no library of NVIDIA's.
#pragma once

#include <chrono>
#include <string>

#include "assay/gpu_state.h"
#include "processes/channel.h"
#include "sandbox/sandbox.h"

namespace assay::processes {

class GpuWatch {
 public:
  // `management` is the path or name of NVIDIA's management library, `pci_bus_id` that of
  // GpuMachine. Throws Error when the process cannot be made; that there is no such library or GPU
  // is told by the first state().
  GpuWatch(const std::string& management, const std::string& pci_bus_id);

  // Throws Error when the process has ended, with what it said, or does not answer in time: then it
  // is ended, and so does every later call.
  GpuState state(std::chrono::milliseconds patience = std::chrono::seconds{10});

 private:
  // What comes until the end of a line.
  std::string answer(std::chrono::milliseconds patience);
  [[noreturn]] void fail(const std::string& why);
  std::string how_it_ended();

  Channel line_, text_;
  sandbox::Process process_;
  std::string failed_;  // why nothing can be asked any more, "" if it can
};

}  // namespace assay::processes
