#include "cases/execute.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "assay/abi.h"
#include "cases/begin_result.h"
#include "cases/judge.h"
#include "processes/bounded_server.h"
#include "util/reserved_memory.h"

namespace assay::cases {
namespace {

void take_failure(CaseResult& result, const processes::Outcome& outcome) {
  result.verdict = outcome.verdict;
  result.detail = outcome.detail;
}

// What the device found counts beside how the call ended: the stronger verdict stands, both are
// told.
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

// Bytes, of the phases so far.
struct MemoryUse {
  std::uint64_t scratch = 0;  // of ctx->alloc on the host, as the worker reports it
  std::uint64_t grown = 0;    // the process, by the kernel's account
  std::uint64_t device = 0;
  std::uint64_t last_grown = 0, last_device = 0;  // in the latest phase alone

  void add(const processes::Outcome& outcome, std::uint64_t growth) {
    last_grown = growth;
    last_device = outcome.device ? outcome.device->work.device_bytes : 0;
    scratch = std::max(scratch, outcome.scratch_peak);
    grown = std::max(grown, last_grown);
    device = std::max(device, last_device);
  }

  // The context allocator's count, unless the process grew by more than it explains.
  std::uint64_t peak() const { return std::max(scratch, grown) + device; }

  MemoryAccount beyond(std::uint64_t elsewhere) const {
    return {.peak = grown - std::min(grown, elsewhere) + device,
            .last_phase_peak = last_grown - std::min(last_grown, elsewhere) + last_device};
  }
};

// Outputs as they stood when they were due: what was due before the last phase is copied then,
// because later phases can write there.
class DueOutputs {
 public:
  DueOutputs(const PlannedCase& planned, std::vector<BufferView> buffers)
      : planned_(planned), buffers_(std::move(buffers)) {}

  bool any(int phase) const {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (is_due(i, phase)) return true;
    }
    return false;
  }

  void take(int phase) {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (!is_due(i, phase)) continue;
      BufferView& view = buffers_[i];
      ReservedMemory& copy = copies_.emplace_back(view.bytes);
      for_each_part(i, [&](std::size_t first, std::size_t bytes) {
        std::memcpy(copy.data() + first, static_cast<const std::byte*>(view.data) + first, bytes);
      });
      view.data = copy.data();
    }
  }

  BufferViews buffers() const { return buffers_; }

  // All that the submission may write to, as it stands.
  using Contents = std::vector<std::vector<std::byte>>;
  Contents contents() const {
    Contents all(buffers_.size());
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      if (planned_.plan.buffers[i].role == Role::input) continue;
      append(i, all[i]);
    }
    return all;
  }

  // The first buffer that is not as it was, or "".
  std::string changed_since(const Contents& before) const {
    const Contents now = contents();
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i] != before[i]) return planned_.plan.buffers[i].name;
    }
    return {};
  }

  std::vector<std::byte> compared() const {
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const BufferPlan& buffer = planned_.plan.buffers[i];
      if (buffer.role == Role::input || !buffer.compared) continue;
      append(i, bytes);
    }
    return bytes;
  }

 private:
  // part(first byte, bytes): all of a buffer, or of a sparse one its pieces.
  template <class Part>
  void for_each_part(std::size_t i, Part part) const {
    const BufferPlan& buffer = planned_.plan.buffers[i];
    if (buffer.pieces.empty()) return part(std::size_t{0}, buffers_[i].bytes);
    for (const Piece& piece : buffer.pieces) {
      part(static_cast<std::size_t>(piece.first) * size_of(buffer.dtype),
           static_cast<std::size_t>(piece.count) * size_of(buffer.dtype));
    }
  }

  void append(std::size_t i, std::vector<std::byte>& to) const {
    const auto* const data = static_cast<const std::byte*>(buffers_[i].data);
    for_each_part(i, [&](std::size_t first, std::size_t bytes) {
      to.insert(to.end(), data + first, data + first + bytes);
    });
  }

  bool is_due(std::size_t i, int phase) const {
    const BufferPlan& buffer = planned_.plan.buffers[i];
    return buffer.role != Role::input && buffers_[i].bytes > 0 &&
           planned_.plan.due_phase(buffer, planned_.spec->group == CaseGroup::timed) == phase;
  }

  const PlannedCase& planned_;
  std::vector<BufferView> buffers_;
  std::vector<ReservedMemory> copies_;
};

// A call that returned ASSAY_ENOMEM, in a case of which an allocation was to be refused.
void judge_refusal(const PlannedCase& planned, const processes::Worker& worker,
                   const CaseInput& input, std::uint64_t poison_seed,
                   const processes::Outcome& outcome, const DueOutputs& outputs,
                   const DueOutputs::Contents& before, CaseResult& result) {
  result.verdict = Verdict::wrong_answer;
  const std::string where =
      fmt::format("allocation {} was refused", planned.spec->failing_allocation);
  if (outcome.allocations < planned.spec->failing_allocation) {
    result.detail = "returned ASSAY_ENOMEM although no allocation was refused";
    return;
  }
  result.detail = processes::find_overrun(planned.plan, planned.layout, worker.output(),
                                          poison_seed, input.device());
  if (!result.detail.empty()) return;
  if (const std::string changed = outputs.changed_since(before); !changed.empty()) {
    result.detail = fmt::format("{}, and {} was changed all the same", where, changed);
    return;
  }
  if (outcome.kept_blocks > 0) {
    result.detail =
        fmt::format("{}, and {} blocks of ctx->alloc were never freed", where, outcome.kept_blocks);
    return;
  }
  result.verdict = Verdict::ok;
}

}  // namespace

CaseResult execute(const World& world, processes::Worker& worker, CaseInput& input,
                   const ExecuteOptions& options, TimeAccount& account, Trace* trace) {
  const PlannedCase& planned = input.planned();
  CaseResult result = begin_result(input.challenge(), *planned.spec);
  {
    const Charge charge(account.timing);
    input.begin(worker.output(), options.poison_seed);
    processes::Outcome outcome = worker.set_case(planned.plan, planned.layout, options.case_id);
    if (outcome.verdict == Verdict::ok && options.make_resident) outcome = worker.prepare();
    if (outcome.verdict != Verdict::ok) {
      take_failure(result, outcome);
      return result;
    }
  }
  DueOutputs outputs(planned, input.views(worker.output()));
  const auto server = input.challenge().callbacks(*planned.spec, planned.plan, outputs.buffers());
  std::optional<processes::BoundedServer> bounded;
  if (server) bounded.emplace(*server, processes::callback_seconds(*planned.spec), world.now);
  MemoryUse memory;
  processes::Outcome outcome;
  processes::DeviceReport device;
  const bool may_run_out = planned.spec->failing_allocation > 0;
  DueOutputs::Contents before;
  std::int64_t kept_blocks = 0;
  std::string overrun;
  for (int phase = 0; phase < planned.plan.phases && outcome.status == ASSAY_OK; ++phase) {
    {
      const Charge charge(account.timing);
      input.reveal(phase);
      if (may_run_out) before = outputs.contents();
      if (options.flush_caches && phase == planned.plan.timed_phase) options.flush_caches();
    }
    if (options.measure_memory) worker.reset_peak();
    outcome = worker.run(phase, *planned.spec, bounded ? &*bounded : nullptr);
    account.submission += outcome.seconds + outcome.device_seconds;
    if (outcome.device) device.add(*outcome.device, phase == planned.plan.timed_phase);
    if (outcome.verdict != Verdict::ok) {
      take_failure(result, outcome);
      take_device_failure(result, device);
      return result;
    }
    if (overrun.empty()) overrun = outcome.overrun;
    if (options.measure_memory) memory.add(outcome, worker.peak_growth());
    kept_blocks += outcome.kept_blocks;
    const double seconds = outcome.seconds + outcome.device_seconds;
    // What a real GPU was measured at stands for the whole: beside it there is but the link.
    const double measured = outcome.device ? outcome.device->seconds : 0;
    if (phase == planned.plan.timed_phase) result.seconds = measured > 0 ? measured : seconds;
    if (phase < planned.plan.timed_phase && trace != nullptr) trace->before_s += seconds;
    const bool last = phase + 1 == planned.plan.phases || outcome.status != ASSAY_OK;
    if (!last && !may_run_out && !outputs.any(phase)) continue;
    const Charge charge(account.reference);
    if (const processes::Outcome collected = worker.collect(planned.plan);
        collected.verdict != Verdict::ok) {
      take_failure(result, collected);
      take_device_failure(result, device);
      return result;
    }
    if (!last) outputs.take(phase);
  }
  if (trace != nullptr) {
    trace->allocations = outcome.allocations;
    trace->kept_blocks = kept_blocks;
  }
  if (may_run_out && outcome.status == ASSAY_ENOMEM) {
    const Charge charge(account.reference);
    judge_refusal(planned, worker, input, options.poison_seed, outcome, outputs, before, result);
  } else if (!options.judge) {
    result.verdict = outcome.status == ASSAY_OK ? Verdict::ok : Verdict::wrong_answer;
  } else {
    const Charge charge(account.reference);
    const std::vector<BufferView> first = input.first_contents();
    judge(
        input.challenge(),
        {planned.spec, &planned.plan, &planned.layout, &input.reference(), outputs.buffers(), first,
         worker.output(), options.poison_seed, outcome.status, server.get(), input.device()},
        result);
    if (may_run_out && result.verdict != Verdict::ok) {
      result.detail +=
          fmt::format(" (where allocation {} was refused)", planned.spec->failing_allocation);
    }
  }
  if (result.verdict == Verdict::wrong_answer && !device.refused.empty())
    result.detail += "; " + device.refused;
  take_device_failure(result, device);
  if (!overrun.empty() && result.verdict == Verdict::ok) {
    result.verdict = Verdict::wrong_answer;
    result.detail = overrun;
  }
  if (options.find_leaks && result.verdict == Verdict::ok && outcome.status == ASSAY_OK &&
      kept_blocks > 0) {
    result.verdict = Verdict::wrong_answer;
    result.detail = fmt::format("{} blocks of ctx->alloc were never freed", kept_blocks);
  }
  if (trace != nullptr && options.keep_outputs) trace->outputs = outputs.compared();
  if (options.measure_memory) {
    result.metrics.push_back({"scratch_bytes", static_cast<double>(memory.peak())});
    input.challenge().hold_to_account(planned.plan, memory.beyond(options.heap_limit),
                                      result.metrics);
    if (result.verdict == Verdict::ok && options.heap_limit > 0 &&
        memory.grown > memory.scratch + options.heap_limit) {
      result.verdict = Verdict::wrong_answer;
      result.detail = fmt::format(
          "the process grew by {:.1f} MB of which {:.1f} MB came from ctx->alloc; {:.1f} MB may "
          "come from elsewhere",
          megabytes(memory.grown), megabytes(memory.scratch), megabytes(options.heap_limit));
    }
  }
  if (outcome.device) add_metrics(result.metrics, device.work);
  return result;
}

}  // namespace assay::cases
