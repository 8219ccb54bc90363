#include "cases/case_runner.h"

#include <algorithm>
#include <bit>

#include "assay/secret.h"
#include "cases/begin_result.h"
#include "cases/case_input.h"
#include "cases/execute.h"
#include "util/stop.h"

namespace assay::cases {
namespace {

// Rounds an arena size up, so that a few sizes serve all cases.
std::size_t rounded(std::size_t bytes) {
  return std::bit_ceil(std::max<std::size_t>(bytes, 1u << 20));
}

}  // namespace

// Replaces arenas that are too small, along with the worker that has mapped them, by larger ones.
void CaseRunner::make_room(std::size_t input, std::size_t output, std::size_t device) {
  const bool on_device = bench_.settings.device.has_value();
  const bool fits =
      input_ && input_->bytes() >= input && output_bytes_ >= output &&
      (!on_device || (device_ && device_->bytes() >= device + processes::kCallbackPayload));
  if (fits) return;
  worker_.reset();
  const std::size_t of_input = std::max(rounded(input), input_ ? input_->bytes() : 0);
  input_.reset();
  input_.emplace("input", of_input, processes::Arena::Access::worker_reads);
  output_bytes_ = std::max(rounded(output), output_bytes_);
  if (!on_device) return;
  device_.reset();
  device_.emplace("device arena", rounded(device) + processes::kCallbackPayload,
                  processes::Arena::Access::worker_writes);
  bench_.settings.give_device_memory(rounded(device));
}

CaseRunner::Ran CaseRunner::run(const CaseSpec& spec, std::uint64_t seed) {
  const bool on_device = bench_.settings.device.has_value();
  const PlannedCase planned = plan_case(
      bench_.challenge, spec, on_device ? processes::Memory::device : processes::Memory::host);
  make_room(planned.layout.input_bytes, planned.layout.output_bytes, planned.layout.device_bytes);
  // Windows are opened when a worker starts, for its first case.
  const bool windows = !planned.layout.windows.empty();
  if (windows) worker_.reset();
  if (worker_ == nullptr) {
    processes::WorkerSettings settings = bench_.settings;
    if (windows) settings.windows_of = &planned.layout;
    const Charge charge(bench_.account.workers);
    ++bench_.account.workers_started;
    worker_ =
        bench_.world.make_worker(settings, *input_, output_bytes_, device_ ? &*device_ : nullptr);
    const processes::Outcome loaded = worker_->load();
    if (loaded.verdict != Verdict::ok) {
      worker_.reset();
      return {begin_result(bench_.challenge, spec, loaded.verdict, loaded.detail)};
    }
  }
  CaseInput input(bench_.challenge, planned, input_->data(), device_ ? device_->data() : nullptr);
  {
    const Charge charge(bench_.account.reference);
    input.draw(seed);
  }
  ExecuteOptions options;
  options.case_id = ++runs_;
  options.poison_seed = derive(seed, "poison", runs_);
  options.find_leaks = find_leaks_;
  Trace trace;
  Ran ran{execute(bench_.world, *worker_, input, options, bench_.account, &trace),
          trace.allocations};
  check_stop();  // a stop request also kills the worker: the result means nothing
  ran.result.seed = seed;
  ++bench_.account.cases;
  // Memory held by a handle that was not destroyed would be missing in later cases, and a device
  // error stays with the process.
  const bool spoilt = windows || !worker_->alive() || trace.kept_blocks != 0 ||
                      (on_device && ran.result.verdict != Verdict::ok);
  if (spoilt) worker_.reset();
  return ran;
}

}  // namespace assay::cases
