// The simulated GPU behind a worker, as the harness drives it; see wire/device.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "assay/challenge.h"
#include "processes/arena.h"
#include "processes/channel.h"
#include "processes/device_report.h"
#include "processes/layout.h"
#include "sandbox/sandbox.h"
#include "wire/device.h"

namespace assay::processes {

class DeviceProcess {
 public:
  // `arena` has room for the device_bytes of the cases' layouts, then kCallbackPayload. Throws
  // Error if no process can be made. A real GPU has a sandbox tier of its own: see driver_files.h.
  DeviceProcess(sandbox::Tier, const DeviceSettings&, Arena& arena);

  // For the worker.
  int link_fd() const { return link_.fd(); }
  int call_fd() const { return call_.theirs(); }

  // Orders. Each returns nothing or false if the process has died or does not answer; the device is
  // then unusable.
  enum class Placed : std::uint8_t { yes, no_room, dead };
  // Writes the addresses into the layout's slots.
  Placed place(const CasePlan&, Layout&);
  bool start(int phase, std::uint64_t instruction_limit);
  std::optional<DeviceReport> stop(std::chrono::milliseconds patience = kPatience);
  // Copies outputs into the arena. `changed` says in words which input was written to, or which
  // output holds values that nothing has written; else "".
  bool collect(const CasePlan&, std::string& changed);
  // Also false if the address is not device memory.
  bool write(std::uint64_t address, std::span<const std::byte>);

  // From the next start on, blocks and warps run in an order drawn from this seed; 0: in their
  // natural order.
  void set_shuffle_seed(std::uint64_t seed) { control().shuffle_seed = seed; }

  // Counts a callback's answer that went to host memory as a copy to the host, because a real
  // submission would have to copy it from the device.
  void answered_on_host(std::size_t bytes) { answered_on_host_ += bytes; }

  int pidfd() const { return process_.pidfd(); }
  // Seconds spent on the worker's calls so far, including the current one.
  double busy_seconds() const;
  std::string how_it_ended();
  // Valid after how_it_ended(): the device ended itself because it ran out of time.
  bool out_of_time() const { return out_of_time_; }
  // It lost its GPU, which is no submission's fault.
  bool gpu_failed() const { return gpu_failed_; }

 private:
  // The device bounds its own processor time (wire/device.h). This limit is for machines on which
  // it gets hardly any processor time.
  static constexpr std::chrono::milliseconds kPatience{300'000};

  bool order(device::Order, std::chrono::milliseconds patience = kPatience);
  device::Control& control() const { return *reinterpret_cast<device::Control*>(control_.data()); }

  std::string name_;  // in messages
  Arena& arena_;
  std::size_t answered_on_host_ = 0;  // since start
  Arena control_, link_;
  Channel order_;
  Channel call_;  // between worker and device; the device holds the end that is elsewhere ours
  Channel text_;
  sandbox::Process process_;
  std::vector<std::size_t> handles_;  // of the placed buffers
  bool usable_ = true, out_of_time_ = false, gpu_failed_ = false;
};

}  // namespace assay::processes
