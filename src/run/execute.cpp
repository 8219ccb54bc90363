#include "run/execute.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "assay/abi.h"
#include "run/begin_result.h"
#include "run/judge.h"

namespace assay::run {
namespace {

void take_failure(CaseResult& result, const Outcome& outcome) {
  result.verdict = outcome.verdict;
  result.detail = outcome.detail;
}

// What the device found counts beside how the call ended: the stronger verdict stands, both are told.
void take_device_failure(CaseResult& result, const DeviceReport& device) {
  if (!device.unsupported.empty()) {
    result.verdict = Verdict::needs_gpu;
    result.detail = fmt::format("needs a GPU ({})", device.unsupported);
    return;
  }
  Verdict verdict = Verdict::ok;
  std::string why;
  if (!device.invalid_ptx.empty()) {
    verdict = Verdict::device_error;
    why = "the device rejects the program: " + device.invalid_ptx;
  } else if (device.findings > 0) {
    verdict = Verdict::device_error;
    why = device.first_finding;
    if (device.findings > 1)
      why += fmt::format(" (and findings at {} more places)", device.findings - 1);
  } else if (device.over_limit) {
    verdict = Verdict::time_limit;
    why = "its kernels executed more instructions than the case allows";
  }
  if (verdict == Verdict::ok) return;
  if (result.verdict < verdict) {
    result.detail += "; on the device: " + why;
    return;
  }
  result.verdict = verdict;
  result.detail = why;
}

double megabytes(std::uint64_t bytes) { return static_cast<double>(bytes) * 1e-6; }

}  // namespace

CaseResult execute(Worker& worker, CaseInput& input, const ExecuteOptions& options,
                   TimeAccount& account) {
  const PlannedCase& planned = input.planned();
  CaseResult result = begin_result(input.challenge(), *planned.spec);
  {
    const Charge charge(account.timing);
    input.begin(worker.output(), options.poison_seed);
    Outcome outcome = worker.set_case(planned.plan, planned.layout, options.case_id);
    if (outcome.verdict == Verdict::ok && options.make_resident) outcome = worker.prepare();
    if (outcome.verdict != Verdict::ok) {
      take_failure(result, outcome);
      return result;
    }
  }
  const std::vector<BufferView> buffers = input.views(worker.output());
  const auto server = input.challenge().callbacks(*planned.spec, planned.plan, buffers);
  std::uint64_t scratch = 0;
  if (options.measure_memory) worker.reset_peak();
  Outcome outcome;
  DeviceReport device;
  for (int phase = 0; phase < planned.plan.phases && outcome.status == ASSAY_OK; ++phase) {
    {
      const Charge charge(account.timing);
      input.reveal(phase);
      if (options.flush_caches && phase == planned.plan.timed_phase) options.flush_caches();
    }
    outcome = worker.run(phase, *planned.spec, server.get());
    account.submission += outcome.seconds + outcome.device_seconds;
    if (outcome.device) device.add(*outcome.device, phase == planned.plan.timed_phase);
    if (outcome.verdict != Verdict::ok) {
      take_failure(result, outcome);
      take_device_failure(result, device);
      return result;
    }
    scratch = std::max(scratch, outcome.scratch_peak);
    if (phase == planned.plan.timed_phase) {
      result.seconds = outcome.seconds + outcome.device_seconds;
    }
  }
  if (const Outcome collected = worker.collect(planned.plan); collected.verdict != Verdict::ok) {
    take_failure(result, collected);
    take_device_failure(result, device);
    return result;
  }
  if (!options.judge) {
    result.verdict = outcome.status == ASSAY_OK ? Verdict::ok : Verdict::wrong_answer;
  } else {
    const Charge charge(account.reference);
    judge(input.challenge(),
          {planned.spec, &planned.plan, &planned.layout, &input.reference(), buffers,
           worker.output(), options.poison_seed, outcome.status, server.get(), input.device()},
          result);
  }
  take_device_failure(result, device);
  if (options.measure_memory) {
    // The context allocator's count, unless the process grew by more than it explains.
    const std::uint64_t unexplained = worker.peak_growth();
    const std::uint64_t host = std::max(scratch, unexplained);
    result.metrics.push_back(
        {"scratch_bytes", static_cast<double>(host + device.work.device_bytes)});
    if (result.verdict == Verdict::ok && options.heap_limit > 0 &&
        unexplained > scratch + options.heap_limit) {
      result.verdict = Verdict::wrong_answer;
      result.detail = fmt::format(
          "the process grew by {:.1f} MB of which {:.1f} MB came from ctx->alloc; {:.1f} MB may "
          "come from elsewhere",
          megabytes(unexplained), megabytes(scratch), megabytes(options.heap_limit));
    }
  }
  if (outcome.device) add_metrics(result.metrics, device.work);
  return result;
}

}  // namespace assay::run
