// One sandboxed worker with one submission loaded, driven by requests.
//
// Protocol. The worker is stopped (SIGSTOP, every thread) whenever the harness does not await a
// reply: while inputs are written, outputs poisoned and outputs checked. A request is
//
//   t0 -> a byte on the line, SIGCONT -> a byte comes back -> t1 -> SIGSTOP,
//   all threads stopped -> t2
//
// so a thread of the submission can neither look at inputs before t0 nor write outputs after t2.
// The harness sleeps between, leaving every core to the submission. A reply that nobody asked for
// is a protocol violation. The harness waits for nothing that the worker holds: each wait ends at a
// deadline, and the worker with it, each line is a channel (channel.h), and no lock is shared.
// Callbacks arrive as replies; the worker is stopped and its clock stands still while the harness
// answers.
//
// A submission in CUDA runs in a worker with a CUDA runtime, beside a simulated GPU in a process of
// its own (wire/device.h). The device serves it while a request is in progress; that time is not
// the worker's.
//
// A worker has as many cores as its submission may keep busy, and cannot take others; should its
// processor time say otherwise, the call fails. Its memory is its own memory group's where there
// are such (sandbox/memory_group.h), else its resident pages', and is measured from before the
// submission is loaded.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "processes/channel.h"
#include "processes/device_process.h"
#include "processes/memory_budget.h"
#include "processes/memory_figures.h"
#include "processes/memory_watch.h"
#include "processes/worker.h"
#include "sandbox/memory_group.h"
#include "sandbox/sandbox.h"
#include "wire/worker.h"

namespace assay::processes {

class WorkerProcess final : public Worker {
 public:
  // See WorkerFactory.
  WorkerProcess(const WorkerSettings&, Arena& input, std::size_t output_bytes,
                Arena* device = nullptr);
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess() override;

  Outcome load() override;
  Outcome set_case(const CasePlan&, const Layout&, std::uint64_t case_id) override;
  Outcome ping() override;
  Outcome prepare() override;
  Outcome self_test(double time_limit_s, std::uint64_t instruction_limit) override;
  Outcome run(int phase, const CaseSpec&, CallbackServer*) override;
  void set_shuffle_seed(std::uint64_t) override;
  Outcome collect(const CasePlan&) override;

  std::byte* output() const override { return output_.data(); }
  bool alive() const override { return alive_; }
  bool device_lost() const override { return device_lost_; }

  std::uint64_t peak_growth() const override;
  void reset_peak() override;

 private:
  Outcome request(wire::Command, double time_limit_s, CallbackServer* server);
  std::optional<Outcome> await_reply(double time_limit_s, double spent);
  // A request during which the device, if there is one, serves the worker.
  Outcome request_with_device(wire::Command, double time_limit_s, CallbackServer* server, int phase,
                              std::uint64_t instruction_limit);
  void take_report(Outcome&);
  double device_seconds() const { return device_ == nullptr ? 0 : device_->busy_seconds(); }
  void describe_windows();
  void limit_memory(sandbox::Program&);
  Outcome prepare_within(double wall_s, double processor_s);
  Outcome timed_out(double time_limit_s, double given_back);
  Outcome would_not_stop();
  Outcome died();
  Outcome device_died();
  Outcome ended(Verdict, std::string detail);
  bool can_be_watched() const;
  void take_baseline();
  std::uint64_t uncounted_growth() const;
  std::uint64_t library_bytes() const;
  std::uint64_t grown_by_pages() const;
  std::uint64_t grown_by_group() const;
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
  Channel line_;  // requests and replies
  Channel text_;  // stdout and stderr
  Channel log_;   // what the CUDA runtime refused
  std::string captured_;
  std::unique_ptr<DeviceProcess> device_;
  std::optional<MemoryShare> share_;
  std::unique_ptr<sandbox::MemoryGroup> group_;
  sandbox::Process process_;
  std::optional<MemoryWatch> watch_;
  Layout layout_;
  // Before the submission is loaded.
  MemoryFigures baseline_;
  std::optional<std::uint64_t> exact_baseline_;
  std::uint64_t group_baseline_ = 0, group_files_ = 0;
  std::uint64_t case_bytes_ = 0;      // pages of shared memory that are the case's
  std::uint64_t callback_bytes_ = 0;  // likewise, of its callbacks
  bool alive_ = true, device_lost_ = false;
};

}  // namespace assay::processes
