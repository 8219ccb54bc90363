#include "cases/execute.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "assay/abi.h"
#include "cases/begin_result.h"
#include "cases/due_outputs.h"
#include "cases/judge.h"
#include "processes/bounded_server.h"
#include "processes/memory_growth.h"
#include "spec/spec.h"

namespace assay::cases {
namespace {

void take_failure(CaseResult& result, const processes::Outcome& outcome) {
  result.verdict = outcome.verdict;
  result.detail = outcome.detail;
}

// Combines a device failure with the call's outcome: the stronger verdict wins, and both are
// reported.
void take_device_failure(CaseResult& result, const processes::DeviceReport& device) {
  const auto failure = processes::device_failure(device);
  if (!failure) return;
  if (failure->verdict != Verdict::needs_gpu && result.verdict < failure->verdict) {
    result.detail += "; on the device: " + failure->detail;
    return;
  }
  result.verdict = failure->verdict;
  result.detail = failure->detail;
}

double megabytes(std::uint64_t bytes) { return static_cast<double>(bytes) * 1e-6; }

// Bytes used in the phases so far.
struct MemoryUse {
  std::uint64_t scratch = 0;  // from ctx->alloc on the host, as the worker reports
  std::uint64_t grown = 0;    // growth of the process, as the kernel counts it
  std::uint64_t device = 0;
  std::uint64_t last_grown = 0, last_device = 0;  // in the latest phase only

  void add(const processes::Outcome& outcome, std::uint64_t growth) {
    last_grown = growth;
    last_device = outcome.device ? outcome.device->work.device_bytes : 0;
    scratch = std::max(scratch, outcome.scratch_peak);
    grown = std::max(grown, last_grown);
    device = std::max(device, last_device);
  }

  // The context allocator's count, unless the process grew by more.
  std::uint64_t peak() const { return std::max(scratch, grown) + device; }

  MemoryAccount beyond(std::uint64_t elsewhere) const {
    return {.peak = processes::beyond(grown + device, elsewhere),
            .last_phase_peak = processes::beyond(last_grown + last_device, elsewhere)};
  }
};

// Prepares input, outputs and worker.
processes::Outcome begin(processes::Worker& worker, const CaseInput& input,
                         const ExecuteOptions& options) {
  const PlannedCase& planned = input.planned();
  input.begin(worker.output(), options.poison_seed);
  processes::Outcome outcome = worker.set_case(planned.plan, planned.layout, options.case_id);
  if (outcome.verdict == Verdict::ok && options.make_resident) outcome = worker.prepare();
  return outcome;
}

// A case that has begun, from its first call to its result.
class Execution {
 public:
  Execution(const World& world, processes::Worker& worker, CaseInput& input,
            const ExecuteOptions& options, TimeAccount& account, CaseResult& result, Trace* trace)
      : worker_(worker),
        input_(input),
        planned_(input.planned()),
        options_(options),
        account_(account),
        result_(result),
        trace_(trace),
        outputs_(planned_, input.views(worker.output())),
        server_(input.challenge().callbacks(*planned_.spec, planned_.plan, outputs_.buffers())) {
    if (server_) bounded_.emplace(*server_, processes::callback_seconds(*planned_.spec), world.now);
  }

  void run() {
    for (int phase = 0; phase < planned_.plan.phases && outcome_.status == ASSAY_OK; ++phase) {
      if (call(phase) && collect(phase)) continue;
      take_device_failure(result_, device_);
      return;
    }
    judge_what_came();
    add_findings();
    hold_to_device();
    if (options_.measure_memory) hold_to_memory();
    if (outcome_.device) add_metrics(result_.metrics, device_.work);
    if (trace_ != nullptr) tell(*trace_);
  }

 private:
  // Returns false if the call did not complete normally; the result then says why.
  bool call(int phase) {
    {
      const Charge charge(account_.timing);
      input_.reveal(phase);
      if (may_run_out()) before_ = outputs_.contents();
      if (options_.flush_caches && phase == planned_.plan.timed_phase) options_.flush_caches();
    }
    if (options_.measure_memory) worker_.reset_peak();
    outcome_ = worker_.run(phase, *planned_.spec, bounded_ ? &*bounded_ : nullptr);
    const double seconds = outcome_.seconds + outcome_.device_seconds;
    account_.submission += seconds;
    if (outcome_.device) device_.add(*outcome_.device, phase == planned_.plan.timed_phase);
    if (outcome_.verdict != Verdict::ok) {
      take_failure(result_, outcome_);
      return false;
    }
    if (overrun_.empty()) overrun_ = outcome_.overrun;
    if (options_.measure_memory) memory_.add(outcome_, worker_.peak_growth());
    kept_blocks_ += outcome_.kept_blocks;
    // A time measured on a real GPU stands for the whole phase: the rest is only the link.
    const double measured = outcome_.device ? outcome_.device->seconds : 0;
    if (measured > planned_.spec->time_limit_s) {
      result_.verdict = Verdict::time_limit;
      result_.detail =
          fmt::format("its kernels took {:.3g} s on the GPU, more than the limit of {:g} s",
                      measured, planned_.spec->time_limit_s);
      return false;
    }
    if (phase == planned_.plan.timed_phase) result_.seconds = measured > 0 ? measured : seconds;
    if (phase < planned_.plan.timed_phase && trace_ != nullptr)
      trace_->before_s += std::max(seconds, measured);
    return true;
  }

  // Fetches the outputs to judge and copies those that later phases may change. False as for
  // call().
  bool collect(int phase) {
    const bool last = phase + 1 == planned_.plan.phases || outcome_.status != ASSAY_OK;
    if (!last && !may_run_out() && !outputs_.any(phase)) return true;
    const Charge charge(account_.reference);
    if (const processes::Outcome collected = worker_.collect(planned_.plan);
        collected.verdict != Verdict::ok) {
      take_failure(result_, collected);
      return false;
    }
    if (!last) outputs_.take(phase);
    return true;
  }

  void judge_what_came() {
    if (may_run_out() && outcome_.status == ASSAY_ENOMEM) {
      const Charge charge(account_.reference);
      judge_refusal();
    } else if (!options_.judge) {
      result_.verdict = outcome_.status == ASSAY_OK ? Verdict::ok : Verdict::wrong_answer;
    } else {
      const Charge charge(account_.reference);
      judge_outputs();
    }
  }

  // Judges a call that returned ASSAY_ENOMEM in a case that refuses an allocation.
  void judge_refusal() {
    const std::string where =
        fmt::format("allocation {} was refused", planned_.spec->failing_allocation);
    if (outcome_.allocations < planned_.spec->failing_allocation)
      return fail("returned ASSAY_ENOMEM although no allocation was refused");
    if (std::string found =
            processes::find_overrun(planned_.plan, planned_.layout, worker_.output(),
                                    options_.poison_seed, input_.device());
        !found.empty())
      return fail(std::move(found));
    if (const std::string changed = outputs_.changed_since(before_); !changed.empty())
      return fail(fmt::format("{}, and {} was changed all the same", where, changed));
    if (outcome_.kept_blocks > 0)
      return fail(fmt::format("{}, and {} blocks of ctx->alloc were never freed", where,
                              outcome_.kept_blocks));
    result_.verdict = Verdict::ok;
  }

  void judge_outputs() {
    const std::vector<BufferView> first = input_.first_contents();
    judge(input_.challenge(),
          {.spec = planned_.spec,
           .plan = &planned_.plan,
           .layout = &planned_.layout,
           .reference = &input_.reference(),
           .buffers = outputs_.buffers(),
           .first = first,
           .output = worker_.output(),
           .poison_seed = options_.poison_seed,
           .status = outcome_.status,
           .server = server_.get(),
           .device = input_.device()},
          result_);
    if (may_run_out() && result_.verdict != Verdict::ok) {
      result_.detail +=
          fmt::format(" (where allocation {} was refused)", planned_.spec->failing_allocation);
    }
  }

  // Adds findings other than wrong outputs. Only the first that fails a correct case is reported.
  void add_findings() {
    if (result_.verdict == Verdict::wrong_answer && !device_.refused.empty())
      result_.detail += "; " + device_.refused;
    take_device_failure(result_, device_);
    if (!overrun_.empty() && result_.verdict == Verdict::ok) fail(overrun_);
    if (options_.find_leaks && result_.verdict == Verdict::ok && outcome_.status == ASSAY_OK &&
        kept_blocks_ > 0)
      fail(fmt::format("{} blocks of ctx->alloc were never freed", kept_blocks_));
  }

  // A result that was computed on the host is not a kernel's, however right: it takes a copy of
  // the inputs. Where speed or memory is measured, grading compares with naive. Callbacks stand for
  // a model whose rows the host may see, in part.
  void hold_to_device() {
    if (!outcome_.device || server_ || result_.verdict != Verdict::ok ||
        !tells_right_from_wrong(*planned_.spec))
      return;
    constexpr std::uint64_t kAnyway = 256;  // flags, counts, offsets of a few items
    std::uint64_t inputs = 0, outputs_on_host = 0;
    for (const BufferPlan& buffer : planned_.plan.buffers) {
      if (buffer.null) continue;
      if (buffer.role != Role::output && !buffer.host) inputs += buffer.bytes();
      if (buffer.role != Role::input && buffer.host) outputs_on_host += buffer.bytes();
    }
    // Where the host is given everything, as in training, it has the data anyway.
    const std::uint64_t allowed = kAnyway + outputs_on_host + inputs / 4;
    if (inputs == 0 || device_.to_host <= allowed) return;
    fail(
        fmt::format("computes on the host: {} bytes were copied to it, and the inputs on the "
                    "device have {}; at "
                    "most a quarter of that may be",
                    device_.to_host, inputs));
  }

  void hold_to_memory() {
    const std::uint64_t elsewhere = options_.heap_limit;
    result_.metrics.push_back({"scratch_bytes", static_cast<double>(memory_.peak())});
    std::string excess = input_.challenge().hold_to_account(
        *planned_.spec, planned_.plan, memory_.beyond(elsewhere), result_.metrics);
    if (result_.verdict != Verdict::ok) return;
    if (!excess.empty()) return fail(std::move(excess));
    if (elsewhere == 0 || memory_.grown <= memory_.scratch + elsewhere) return;
    fail(
        fmt::format("the process grew by {:.1f} MB of which {:.1f} MB came from ctx->alloc; "
                    "{:.1f} MB may come from elsewhere",
                    megabytes(memory_.grown), megabytes(memory_.scratch), megabytes(elsewhere)));
  }

  void tell(Trace& trace) const {
    trace.allocations = outcome_.allocations;
    trace.kept_blocks = kept_blocks_;
    if (options_.keep_outputs) trace.outputs = outputs_.compared();
  }

  void fail(std::string why) {
    result_.verdict = Verdict::wrong_answer;
    result_.detail = std::move(why);
  }

  bool may_run_out() const { return planned_.spec->failing_allocation > 0; }

  processes::Worker& worker_;
  CaseInput& input_;
  const PlannedCase& planned_;
  const ExecuteOptions& options_;
  TimeAccount& account_;
  CaseResult& result_;
  Trace* const trace_;  // null: not wanted
  DueOutputs outputs_;
  const std::unique_ptr<CallbackServer> server_;
  std::optional<processes::BoundedServer> bounded_;
  processes::Outcome outcome_;  // of the latest call
  processes::DeviceReport device_;
  MemoryUse memory_;
  DueOutputs::Contents before_;  // before the latest call, if an allocation is to be refused
  std::int64_t kept_blocks_ = 0;
  std::string overrun_;  // the first in any call
};

}  // namespace

CaseResult execute(const World& world, processes::Worker& worker, CaseInput& input,
                   const ExecuteOptions& options, TimeAccount& account, Trace* trace) {
  CaseResult result = begin_result(input.challenge(), *input.planned().spec);
  {
    const Charge charge(account.timing);
    if (const processes::Outcome begun = begin(worker, input, options);
        begun.verdict != Verdict::ok) {
      take_failure(result, begun);
      return result;
    }
  }
  Execution(world, worker, input, options, account, result, trace).run();
  return result;
}

}  // namespace assay::cases
