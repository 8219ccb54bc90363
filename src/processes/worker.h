// One submission, loaded, that runs cases on request. WorkerProcess is the real one; timing,
// correctness and own tests know only this, so that tests can put a scripted one in its place.
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
  // Its memory is told to the page, which costs it time: not where time is measured.
  bool measures_memory = false;
  int image_fd = -1;  // the program to run as the worker; -1: assay's own
  // Of the case that it is made for, if buffers of that are sparse: it opens their windows when it
  // starts. Must outlive the start only.
  const Layout* windows_of = nullptr;
  // Told, when the worker is gone, all that it printed, as far as the harness keeps it (64 KiB).
  // Must not throw; may be called from any thread.
  std::function<void(std::string_view)> on_text;

  // Where there is a device: room for a case's buffers, and the submission's share on top.
  void give_device_memory(std::size_t of_case) {
    device->memory_bytes = of_case + static_cast<std::uint64_t>(spec->limits.memory_bytes);
  }
};

// What became of one request.
struct Outcome {
  Verdict verdict = Verdict::ok;   // ok: the reply arrived; says nothing about the outputs
  std::string detail{};            // why not ok
  std::int32_t status = 0;         // ASSAY_* of the call, as the worker reports it
  double seconds = 0;              // the call's time, without callbacks and without the device's
  double device_seconds = 0;       // simulating for it
  std::uint64_t scratch_peak = 0;  // as the worker reports it, as are the next two
  std::uint64_t allocations = 0;   // asked of ctx->alloc since the case began
  std::int64_t kept_blocks = 0;    // of ctx->alloc: by how many this call left more behind
  std::string overrun{};           // beside which block of ctx->alloc it wrote, or ""
  // Of load(), run() and self_test(), where there is a device that still answers.
  std::optional<DeviceReport> device{};
};

class Worker {
 public:
  virtual ~Worker() = default;

  // Loads the submission; ok, load_error, needs_gpu, or how the process died.
  virtual Outcome load() = 0;

  // The case whose buffers the next requests are about. Writes the header into the input arena;
  // with a shared arena, call it again after another worker's turn. Puts the buffers of the device
  // into its memory.
  virtual Outcome set_case(const CasePlan&, const Layout&, std::uint64_t case_id) = 0;

  virtual Outcome ping() = 0;     // does nothing: measures the protocol
  virtual Outcome prepare() = 0;  // the case's buffers become resident, freed scratch is poisoned
  // The tests that a submission ships, linked with some implementation; status 0 accepts it.
  // The detail is what they printed, if anything. Of a device, if there is one, they get so many
  // warp instructions.
  virtual Outcome self_test(double time_limit_s, std::uint64_t instruction_limit) = 0;
  virtual Outcome run(int phase, const CaseSpec&, BoundedServer*) = 0;  // null: no callbacks
  // The order of blocks and warps on the simulated device, if there is one; 0: their own.
  virtual void set_shuffle_seed(std::uint64_t) = 0;
  // After a phase at whose end outputs are due, and after the last: brings the outputs back from
  // the device, if there is one, as they stand. Fails too when the submission changed an input
  // there.
  virtual Outcome collect(const CasePlan&) = 0;

  virtual std::byte* output() const = 0;  // base of the output arena
  // False once a request has not come back with ok; then no other may be made.
  virtual bool alive() const = 0;
  // It is not alive because its simulated device died.
  virtual bool device_lost() const { return false; }

  // By how many bytes its memory has grown, at its peak since reset_peak(), over what it was before
  // the submission was loaded, by the kernel's account: without the buffers of the case, the files
  // that are mapped, and what is not known exactly. Throws Error where the kernel gives no account.
  virtual std::uint64_t peak_growth() const = 0;
  virtual void reset_peak() = 0;
};

// Makes a worker, not yet loaded. `input` may be shared by several workers, of which one at a time
// runs. `device` is the arena of a device, see DeviceProcess; null without one. Throws Error when
// none can be made.
using WorkerFactory = std::function<std::unique_ptr<Worker>(
    const WorkerSettings&, Arena& input, std::size_t output_bytes, Arena* device)>;

}  // namespace assay::processes
