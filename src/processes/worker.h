// A loaded submission that runs cases on request. WorkerProcess is the real one; timing,
// correctness and own tests know only this interface, so tests can substitute a scripted worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "assay/challenge.h"
#include "assay/results.h"
#include "processes/arena.h"
#include "processes/bounded_server.h"
#include "processes/device_report.h"
#include "processes/layout.h"
#include "sandbox/sandbox.h"

namespace assay::processes {

struct WorkerSettings {
  sandbox::Tier tier = sandbox::Tier::none;
  std::filesystem::path library;
  std::uint32_t challenge = 0;  // index in challenge_rows()
  const ChallengeSpec* spec = nullptr;
  int threads = 1;                       // the submission's cap
  double cpu_limit_s = 3600;             // of the whole process, a backstop
  std::optional<DeviceSettings> device;  // the submission is in CUDA
  // Tracks memory to the page. That costs the worker time, so do not set it for timing.
  bool measures_memory = false;
  int image_fd = -1;  // the program to run as the worker; -1: assay's own
  // The layout of the case that the worker is made for, if the case has sparse buffers; the worker
  // opens their windows when it starts. Only needs to outlive the start.
  const Layout* windows_of = nullptr;
  // Called when the worker is gone, with everything it printed that the harness kept (64 KiB). Must
  // not throw; may be called from any thread.
  std::function<void(std::string_view)> on_text;

  // For workers with a device: makes room for a case's buffers plus the submission's share.
  void give_device_memory(std::size_t of_case) {
    device->memory_bytes = of_case + static_cast<std::uint64_t>(spec->limits.memory_bytes);
  }
};

// The result of one request.
struct Outcome {
  Verdict verdict = Verdict::ok;   // ok: the reply arrived; says nothing about the outputs
  std::string detail{};            // why not ok
  std::int32_t status = 0;         // ASSAY_* of the call, as the worker reports it
  double seconds = 0;              // the call's time, without callbacks and without the device's
  double device_seconds = 0;       // spent simulating for it
  std::uint64_t scratch_peak = 0;  // as the worker reports it, as are the next two
  std::uint64_t allocations = 0;   // requests to ctx->alloc since the case began
  std::int64_t kept_blocks = 0;    // by how many this call increased the live blocks of ctx->alloc
  std::string overrun{};           // which side of which ctx->alloc block it overran, or ""
  // Set by load(), run() and self_test() if there is a device that still answers.
  std::optional<DeviceReport> device{};
};

class Worker {
 public:
  virtual ~Worker() = default;

  // Loads the submission; ok, load_error, needs_gpu, or how the process died.
  virtual Outcome load() = 0;

  // Sets the case whose buffers the next requests use, and writes the header into the input arena.
  // If the arena is shared, call it again after another worker's turn. Also places the device's
  // buffers in its memory.
  virtual Outcome set_case(const CasePlan&, const Layout&, std::uint64_t case_id) = 0;

  virtual Outcome ping() = 0;     // does nothing: measures the protocol
  virtual Outcome prepare() = 0;  // makes the case's buffers resident and poisons freed scratch
  // Runs the tests that a submission ships, linked with some implementation; status 0 accepts it.
  // The detail is what they printed, if anything. On a device, if there is one, they may use
  // `instruction_limit` warp instructions.
  virtual Outcome self_test(double time_limit_s, std::uint64_t instruction_limit) = 0;
  virtual Outcome run(int phase, const CaseSpec&, BoundedServer*) = 0;  // null: no callbacks
  // Seeds the order of blocks and warps on the simulated device, if any; 0: natural order.
  virtual void set_shuffle_seed(std::uint64_t) = 0;
  // Call it after each phase at whose end outputs are due, and after the last phase. Copies the
  // outputs back from the device, if there is one. Also fails if the submission changed an input
  // there.
  virtual Outcome collect(const CasePlan&) = 0;

  virtual std::byte* output() const = 0;  // base of the output arena
  // False once a request has failed; then no further request may be made.
  virtual bool alive() const = 0;
  // Not alive because its simulated device died.
  virtual bool device_lost() const { return false; }

  // By how many bytes its memory has grown, at its peak since reset_peak(), beyond what it was
  // before the submission was loaded, by the kernel's account. Excludes the case's buffers, mapped
  // files, and what is not known exactly. Throws Error if the kernel gives no account.
  virtual std::uint64_t peak_growth() const = 0;
  virtual void reset_peak() = 0;
};

// Makes a worker that is not yet loaded. Several workers may share `input` if only one of them runs
// at a time. `device` is the arena of a device (see DeviceProcess), or null. Throws Error if no
// worker can be made.
using WorkerFactory = std::function<std::unique_ptr<Worker>(
    const WorkerSettings&, Arena& input, std::size_t output_bytes, Arena* device)>;

}  // namespace assay::processes
