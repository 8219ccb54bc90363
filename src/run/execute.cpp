#include "run/execute.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "assay/abi.h"
#include "assay/parallel.h"
#include "run/judge.h"

namespace assay::run {
namespace {

// Thread stacks, lazily bound symbols and allocator bookkeeping, which are not scratch.
constexpr std::uint64_t kUncountedGrowth = 1 << 20;

CaseResult describe(const CaseInput& input) {
  CaseResult result;
  const CaseSpec& spec = *input.planned().spec;
  result.name = spec.name;
  result.group = spec.group;
  result.shape = input.challenge().shape(spec);
  return result;
}

void take_failure(CaseResult& result, const Outcome& outcome) {
  result.verdict = outcome.verdict;
  result.detail = outcome.detail;
}

}  // namespace

void flush_caches() {
  static const std::size_t bytes = [] {
    const long l3 = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
    return std::clamp<std::size_t>(l3 > 0 ? 2 * static_cast<std::size_t>(l3) : 0, 32u << 20, 160u << 20);
  }();
  static std::vector<std::uint64_t> buffer(bytes / sizeof(std::uint64_t));
  parallel_for(static_cast<std::int64_t>(buffer.size()), 1 << 16,
               [](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) ++buffer[static_cast<std::size_t>(i)];
               });
}

CaseResult execute(WorkerProcess& worker, CaseInput& input, const ExecuteOptions& options,
                   TimeAccount& account) {
  CaseResult result = describe(input);
  const PlannedCase& planned = input.planned();
  {
    const Charge charge(account.timing);
    input.begin(worker.output(), options.poison_seed);
    worker.set_case(planned.plan, planned.layout, options.case_id);
    const Outcome outcome = options.make_resident ? worker.prepare() : Outcome{};
    if (outcome.verdict != Verdict::ok) {
      take_failure(result, outcome);
      return result;
    }
  }
  const std::vector<BufferView> buffers = input.views(worker.output());
  const auto server = input.challenge().callbacks(*planned.spec, planned.plan, buffers);
  std::uint64_t before = 0, scratch = 0;
  if (options.measure_memory) {
    worker.reset_peak();
    before = worker.resident_bytes();
  }
  Outcome outcome;
  for (int phase = 0; phase < planned.plan.phases && outcome.status == ASSAY_OK; ++phase) {
    {
      const Charge charge(account.timing);
      input.reveal(phase);
      if (options.flush_caches && phase == planned.plan.timed_phase) flush_caches();
    }
    outcome = worker.run(phase, planned.spec->time_limit_s, server.get());
    account.submission += outcome.seconds;
    if (outcome.verdict != Verdict::ok) {
      take_failure(result, outcome);
      return result;
    }
    scratch = std::max(scratch, outcome.scratch_peak);
    if (phase == planned.plan.timed_phase) result.seconds = outcome.seconds;
  }
  if (!options.judge) {
    result.verdict = outcome.status == ASSAY_OK ? Verdict::ok : Verdict::wrong_answer;
  } else {
    const Charge charge(account.reference);
    judge(input.challenge(),
          {planned.spec, &planned.plan, &planned.layout, &input.reference(), buffers,
           worker.output(), options.poison_seed, outcome.status, server.get()},
          result);
  }
  if (options.measure_memory) {
    // The context allocator's count, unless the process grew by more than it explains.
    const std::uint64_t peak = worker.peak_bytes();
    const std::uint64_t growth = peak > before ? peak - before : 0;
    const std::uint64_t unexplained = growth > kUncountedGrowth ? growth - kUncountedGrowth : 0;
    result.metrics.push_back({"scratch_bytes", static_cast<double>(std::max(scratch, unexplained))});
  }
  return result;
}

}  // namespace assay::run
