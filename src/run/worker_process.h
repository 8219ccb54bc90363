// One sandboxed worker with one submission loaded, driven by requests.
//
// Protocol. The worker is stopped (SIGSTOP, every thread) whenever the harness does not await a
// reply: while inputs are written, outputs poisoned and outputs checked. A request is
//
//   t0 -> count on the request eventfd, SIGCONT -> reply eventfd readable -> t1 -> SIGSTOP,
//   all threads stopped -> t2
//
// so a thread of the submission can neither look at inputs before t0 nor write outputs after t2. The
// harness sleeps between, leaving every core to the submission. A reply that nobody asked for is a
// protocol violation. Callbacks arrive as replies; the worker is stopped and its clock stands still
// while the harness answers.
//
// A submission in CUDA runs in a worker with a CUDA runtime, beside a simulated GPU in a process of its own
// (wire/device.h). The device serves it while a request is in progress; that time is not the worker's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "assay/challenge.h"
#include "assay/results.h"
#include "run/arena.h"
#include "run/device_process.h"
#include "run/layout.h"
#include "sandbox/sandbox.h"
#include "wire/worker.h"

namespace assay::run {

struct WorkerSettings {
  sandbox::Tier tier = sandbox::Tier::none;
  std::filesystem::path library;
  std::uint32_t challenge = 0;  // index in challenge_rows()
  const ChallengeSpec* spec = nullptr;
  int threads = 1;                       // the submission's cap
  double cpu_limit_s = 3600;             // of the whole process, a backstop
  std::optional<DeviceSettings> device;  // the submission is in CUDA
};

// What became of one request.
struct Outcome {
  Verdict verdict = Verdict::ok;   // ok: the reply arrived; says nothing about the outputs
  std::string detail;              // why not ok
  std::int32_t status = 0;         // ASSAY_* of the call, as the worker reports it
  double seconds = 0;              // the call's time, without callbacks and without the device's
  double device_seconds = 0;       // simulating for it
  std::uint64_t scratch_peak = 0;  // as the worker reports it
  std::optional<DeviceReport>
      device;  // of load() and run(), where there is a device that still answers
};

class WorkerProcess {
 public:
  // `input` may be shared by several workers, of which one at a time runs. `device` is the arena of a device, see
  // DeviceProcess; null without one. Throws Error when no process can be made.
  WorkerProcess(const WorkerSettings&, Arena& input, std::size_t output_bytes,
                Arena* device = nullptr);

  // Loads the submission; ok, load_error, or how the process died.
  Outcome load();

  // The case whose buffers the next requests are about. Writes the header into the input arena;
  // with a shared arena, call it again after another worker's turn. Puts the buffers of the device
  // into its memory.
  Outcome set_case(const CasePlan&, const Layout&, std::uint64_t case_id);

  Outcome ping();
  Outcome prepare();
  // The tests that a submission ships, linked with some implementation; status 0 accepts it.
  Outcome self_test(double time_limit_s);
  Outcome run(int phase, const CaseSpec&, CallbackServer* server);
  // The order of blocks and warps on the simulated device, if there is one: DeviceProcess.
  void set_shuffle_seed(std::uint64_t);
  // After the last phase: brings the outputs back from the device, if there is one. Fails too when the submission
  // changed an input there.
  Outcome collect(const CasePlan&);

  std::byte* output() const { return output_.data(); }
  bool alive() const { return alive_; }

  // Bytes of private memory that the process has, or had at its peak since reset_peak(), by the
  // kernel's account. 0 when it is not available.
  std::uint64_t resident_bytes() const;
  std::uint64_t peak_bytes() const;
  void reset_peak() const;
  // Of that, what is no scratch of the submission's: thread stacks, lazily bound symbols, allocator bookkeeping; in
  // CUDA also the library's pages and what the runtime keeps of them when it loads their kernels.
  std::uint64_t uncounted_growth() const;

 private:
  Outcome request(wire::Command, double time_limit_s, CallbackServer* server);
  std::optional<Outcome> await_reply(double time_limit_s);
  // A request during which the device, if there is one, serves the worker.
  Outcome request_with_device(wire::Command, double time_limit_s, CallbackServer* server, int phase,
                              std::uint64_t instruction_limit);
  void take_report(Outcome&);
  double device_seconds() const { return device_ == nullptr ? 0 : device_->busy_seconds(); }
  Outcome timed_out(double time_limit_s);
  Outcome died();
  Outcome device_died();
  Outcome ended(Verdict, std::string detail);
  void answer(CallbackServer* server);
  bool drain_text();
  wire::Header& header() const { return *reinterpret_cast<wire::Header*>(input_.data()); }
  const wire::Control& control() const {
    return *reinterpret_cast<const wire::Control*>(control_.data());
  }
  std::string text_note() const;

  WorkerSettings settings_;
  Arena& input_;
  Arena output_, control_;
  Fd request_, reply_, text_;
  std::string captured_;  // stdout and stderr
  std::unique_ptr<DeviceProcess> device_;
  Fd log_;  // what the CUDA runtime refused
  sandbox::Process process_;
  Layout layout_;
  bool alive_ = true;
};

}  // namespace assay::run
