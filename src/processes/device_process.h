// The simulated GPU behind a worker, as the harness drives it; wire/device.h says how and why.
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
  // `arena` holds what the layouts of cases have in device_bytes, and kCallbackPayload behind it.
  // Throws Error when no process can be made. A real GPU has a tier of its own: driver_files.h.
  DeviceProcess(sandbox::Tier, const DeviceSettings&, Arena& arena);

  // For the worker.
  int link_fd() const { return link_.fd(); }
  int call_fd() const { return call_.theirs(); }

  // Orders. Nothing, or false, when the process has ended or does not answer; then it is of no
  // further use.
  enum class Placed : std::uint8_t { yes, no_room, dead };
  // Writes the addresses into the layout's slots.
  Placed place(const CasePlan&, Layout&);
  bool start(int phase, std::uint64_t instruction_limit);
  std::optional<DeviceReport> stop(std::chrono::milliseconds patience = kPatience);
  // Puts outputs into the arena. `changed`: the input that was written to, or the output with
  // values that nothing has written, in words, or "".
  bool collect(const CasePlan&, std::string& changed);
  // False also when the address is no device memory.
  bool write(std::uint64_t address, std::span<const std::byte>);

  // Blocks and warps run in an order drawn from it from the next start on; 0: in their own.
  void set_shuffle_seed(std::uint64_t seed) { control().shuffle_seed = seed; }

  // A callback's answer that went to host memory counts as copied there: it would come from the
  // device.
  void answered_on_host(std::size_t bytes) { answered_on_host_ += bytes; }

  int pidfd() const { return process_.pidfd(); }
  // Seconds spent on the worker's calls so far, the present one included.
  double busy_seconds() const;
  std::string how_it_ended();
  // Known once how_it_ended() was asked: it ended itself because it could not get done.
  bool out_of_time() const { return out_of_time_; }

 private:
  // The device bounds its own processor time (wire/device.h); this is for a machine on which it
  // gets hardly any.
  static constexpr std::chrono::milliseconds kPatience{300'000};

  bool order(device::Order, std::chrono::milliseconds patience = kPatience);
  device::Control& control() const { return *reinterpret_cast<device::Control*>(control_.data()); }

  std::string name_;  // in messages
  Arena& arena_;
  std::size_t answered_on_host_ = 0;  // since start
  Arena control_, link_;
  Channel order_;
  Channel call_;  // between worker and device, which holds the end that is ours elsewhere
  Channel text_;
  sandbox::Process process_;
  std::vector<std::size_t> handles_;  // of the placed buffers
  bool usable_ = true, out_of_time_ = false;
};

}  // namespace assay::processes
