// One sandboxed worker with one submission loaded, driven by requests.
//
// Protocol. The worker is stopped (SIGSTOP, every thread) whenever the harness does not await a
// reply: while inputs are written, outputs poisoned and outputs checked. A request is
//
//   t0 -> a byte on the line, SIGCONT -> a byte comes back -> t1 -> SIGSTOP,
//   all threads stopped -> t2
//
// so a thread of the submission can neither look at inputs before t0 nor write outputs after t2.
// The harness sleeps in between and leaves every core to the submission. Violations of this
// protocol, such as an unasked reply, are listed in protocol_violation.h. The harness never depends
// on the worker's cooperation: each wait has a deadline at which the worker is killed, each line is
// a channel (channel.h), and no lock is shared. Callbacks arrive as replies; the worker is stopped
// and its clock stands still while the harness answers.
//
// A submission in CUDA runs in a worker with a CUDA runtime, beside a simulated GPU in a separate
// process (wire/device.h). The device serves it while a request is in progress; that time is not
// charged to the worker.
//
// A worker gets as many cores as its submission may keep busy, and cannot take others. If its
// processor time says otherwise, the call fails.
//
// worker_memory.h keeps account of a worker's memory; worker_diagnosis.h interprets its end.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "processes/channel.h"
#include "processes/device_process.h"
#include "processes/lost_time.h"
#include "processes/worker.h"
#include "processes/worker_diagnosis.h"
#include "processes/worker_memory.h"
#include "processes/worker_text.h"
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
  Outcome run(int phase, const CaseSpec&, BoundedServer*) override;
  void set_shuffle_seed(std::uint64_t) override;
  Outcome collect(const CasePlan&) override;

  std::byte* output() const override { return output_.data(); }
  bool alive() const override { return alive_; }
  bool device_lost() const override { return device_lost_; }

  std::uint64_t peak_growth() const override { return memory_.peak_growth(process_.pid()); }
  void reset_peak() override { memory_.reset_peak(process_.pid()); }

 private:
  void describe_windows();

  // Makes one request, including its callbacks, up to the final reply.
  Outcome request(wire::Command, double time_limit_s, BoundedServer* server);
  // Lets the worker run until it has replied, and stops it. Returns an outcome if the worker died
  // or had to be killed.
  struct Spent {
    Scheduling before;            // when the request was made
    double called = 0, wall = 0;  // seconds of the request: charged to it, and in total
  };
  std::optional<Outcome> step(double time_limit_s, Spent&);
  std::optional<Outcome> await_reply(double time_limit_s, const Spent&);
  Scheduling scheduling() const { return {process_.queued_seconds(), process_.cpu_seconds()}; }
  void take_results(Outcome&) const;
  // A request during which the device, if there is one, serves the worker.
  Outcome request_with_device(wire::Command, double time_limit_s, BoundedServer* server, int phase,
                              std::uint64_t instruction_limit);
  void take_report(Outcome&);
  double device_seconds() const { return device_ == nullptr ? 0 : device_->busy_seconds(); }
  Outcome prepare_within(double wall_s, double processor_s);
  void answer(BoundedServer* server);
  std::string load_message() const;

  // Ways for a worker to end.
  Outcome ended(Diagnosis);
  Outcome died();
  Outcome device_died();
  Outcome timed_out(double time_limit_s, double given_back);

  wire::Header& header() const { return *reinterpret_cast<wire::Header*>(input_.data()); }
  const wire::Control& control() const {
    return *reinterpret_cast<const wire::Control*>(control_.data());
  }

  WorkerSettings settings_;
  Arena& input_;
  Arena output_, control_;
  Channel line_;      // requests and replies
  Channel handover_;  // passes the memory watch's listener, before the submission is loaded
  WorkerText text_;
  Channel log_;  // what the CUDA runtime refused
  std::unique_ptr<DeviceProcess> device_;
  WorkerMemory memory_;
  sandbox::Process process_;
  int cores_ = 0;  // on which it may run
  Layout layout_;
  std::vector<std::byte> answer_;  // to a callback, of which the bulk goes to the device
  bool alive_ = true, device_lost_ = false;
};

}  // namespace assay::processes
