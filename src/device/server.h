// How the device process handles orders and calls: see wire/device.h. Needs only memory, so that
// tests can drive it without a process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "device/gpu.h"
#include "sim/counters.h"
#include "wire/device.h"

namespace assay::device {

class Server {
 public:
  // All must outlive the server. `link` is kLinkBytes long and untrusted; `control` and `arena`
  // belong to the harness.
  Server(Control& control, std::span<std::byte> arena, std::byte* link, Gpu& gpu);

  void obey();  // carries out the order in control; throws NeverEnds or GpuFault
  bool listening() const { return listening_; }
  // While listening, the process waited this long without sleeping. That is not the work of the
  // phase.
  void waited(std::uint64_t ns);
  void serve();  // answers the call in the link page; throws nothing but NeverEnds and GpuFault
  // The processor time of this process, in ns, by which the current work must be done; 0 when idle.
  // Thread-safe.
  const std::atomic<std::uint64_t>& deadline() const { return deadline_; }

 private:
  // A buffer of the case on the GPU: its block, and the canaries around it that the block holds too.
  struct Placed {
    Buffer buffer;
    std::uint64_t block = 0, before = 0, behind = 0;
  };

  void place();
  void start();
  void stop();
  void write_bulk();
  void collect();
  std::span<std::byte> contents(const Buffer&) const;

  void dispatch(const Call&, Answer&);
  void load_module(Answer&);
  void find_kernel(const Call&, Answer&);
  void find_variable(const Call&, Answer&);
  void make_tensor_map(const Call&, Answer&);
  void write(const Call&, Answer&);
  void read(const Call&, Answer&);
  void move_within(const Call&, Answer&);
  static bool is_transfer(CallKind);
  void count_transfer(const Call&, std::uint64_t bytes);
  void launch(const Call&, Answer&);
  void order(const Call&);
  void touch(const Call&);
  void take_finding(const Call&);
  void take_findings();
  const sim::Operation* operation() const { return operation_ ? &*operation_ : nullptr; }
  void note_refusal(const Call&, sim::LaunchStatus);
  void take(const sim::LaunchResult&);
  void note_local_memory(const sim::LaunchConfig&, std::uint32_t bytes);
  void take(const sim::Finding&);
  void note_missing(const char* what);
  void note_failed(const char* what);
  bool out_of_time();
  bool is_placed(std::uint64_t address) const;
  // The buffer in the arena, with the canaries that its block holds too.
  std::span<std::byte> guarded(const Placed&) const;
  std::string text_payload(const Call&) const;

  Control& control_;
  std::span<std::byte> arena_;
  LinkPage& page_;
  std::byte* window_;
  Gpu& gpu_;
  std::vector<Placed> placed_;
  std::uint64_t placed_bytes_ = 0;
  bool listening_ = false;
  std::optional<sim::Operation> operation_;  // sent by the worker for the calls that follow
  std::string image_;                        // of the module being sent
  std::size_t image_bytes_ = 0;              // its announced size
  std::size_t modules_ = 0, all_image_bytes_ = 0;
  struct Row {
    Call call;
    std::uint64_t bytes = 0, step = 0, step_from = 0;  // from the row before
  };
  std::optional<Row> last_row_;               // if the latest call was a transfer
  std::vector<std::uint32_t> kernel_params_;  // bytes of the parameter block, by KernelId
  sim::Counters counters_;                    // of the launches since start
  std::uint64_t most_local_ = 0;              // of local memory that a launch since start counts
  Report report_;                             // since start; gets the counters at stop
  std::uint64_t phase_deadline_ = ~std::uint64_t{0} / 2;  // of processor time, without the grace
  std::atomic<std::uint64_t> deadline_{0};
};

}  // namespace assay::device
