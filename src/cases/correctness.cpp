#include "cases/correctness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>

#include "assay/random.h"
#include "assay/secret.h"
#include "cases/begin_result.h"
#include "cases/case_input.h"
#include "cases/execute.h"
#include "cases/smallest_failure.h"
#include "draw/space.h"
#include "records/lookup.h"

namespace assay::cases {
namespace {

// Runs the cases of one submission one after the other, starting workers as needed.
class CorrectnessRun {
 public:
  CorrectnessRun(const Bench& bench, std::vector<PlannedCase> cases)
      : world_(bench.world),
        challenge_(bench.challenge),
        settings_(bench.settings),
        run_seed_(bench.run_seed),
        cases_(std::move(cases)),
        account_(bench.account),
        input_("input", capacity(&processes::Layout::input_bytes) + processes::kMostSkew,
               processes::Arena::Access::worker_reads) {
    if (!settings_.device) return;
    const std::size_t bytes = capacity(&processes::Layout::device_bytes);
    device_.emplace("device arena", bytes + processes::kMostSkew + processes::kCallbackPayload,
                    processes::Arena::Access::worker_writes);
    settings_.give_device_memory(bytes);
  }

  std::vector<CaseResult> run(bool stop_at_failure) {
    std::vector<CaseResult> results(cases_.size());
    bool stopped = false;
    for (const std::size_t i : order(!stop_at_failure)) {
      if (stopped) {
        results[i] = not_run(cases_[i], Verdict::skipped, "not attempted: another case failed");
        continue;
      }
      results[i] = run_case(cases_[i]);
      ++account_.cases;
      stopped = stop_at_failure && is_failure(results[i]);
    }
    // If no case failed and no kernel ran, the simulator lacks a feature and the submission is not
    // to blame: nothing is graded. Otherwise the results stand, so that no submission can escape
    // them by asking for a GPU.
    const bool graded =
        std::ranges::any_of(results, &is_failure) || std::ranges::any_of(results, &ran_kernels);
    if (!needs_gpu_.empty() && !graded) {
      for (std::size_t i = 0; i < cases_.size(); ++i) {
        results[i] = not_run(cases_[i], Verdict::needs_gpu, needs_gpu_);
      }
    }
    return results;
  }

 private:
  std::size_t capacity(std::size_t processes::Layout::*bytes) const {
    std::size_t most = 16384;
    for (const PlannedCase& c : cases_) most = std::max(most, c.layout.*bytes);
    return most;
  }

  std::vector<std::size_t> order(bool shuffled) const {
    std::vector<std::size_t> order(cases_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (shuffled) {
      Random random(derive(run_seed_, "order"));
      shuffle(order, random);
    }
    return order;
  }

  // True for cases whose memory or speed must not depend on earlier cases.
  static bool measures_memory(const CaseSpec& spec) {
    return spec.group == CaseGroup::resource || spec.group == CaseGroup::timed ||
           spec.measures_memory || spec.deterministic;
  }

  // Whether no other case may run in the case's worker. One that measures memory gives freed pages
  // back, so that readying another case would take the time to make them again. Windows are opened
  // when a worker starts.
  static bool needs_worker_of_its_own(const PlannedCase& planned) {
    return measures_memory(*planned.spec) || !planned.layout.windows.empty();
  }

  CaseResult not_run(const PlannedCase& planned, Verdict verdict, std::string detail) const {
    return begin_result(challenge_, *planned.spec, verdict, std::move(detail));
  }

  // Starts a worker and loads the library. Returns the failure, or nothing on success.
  std::optional<processes::Outcome> start_worker(const PlannedCase& planned) {
    const Charge charge(account_.workers);
    ++account_.workers_started;
    processes::WorkerSettings settings = settings_;
    settings.measures_memory = measures_memory(*planned.spec);
    if (!planned.layout.windows.empty()) settings.windows_of = &planned.layout;
    worker_ = world_.make_worker(settings, input_,
                                 capacity(&processes::Layout::output_bytes) + processes::kMostSkew,
                                 device_ ? &*device_ : nullptr);
    const processes::Outcome outcome = worker_->load();
    if (outcome.verdict == Verdict::ok) return std::nullopt;
    worker_.reset();
    return outcome;
  }

  // Returns the case's result if the submission does not load again.
  std::optional<CaseResult> replace_worker(const PlannedCase& planned) {
    worker_.reset();
    const auto failure = start_worker(planned);
    if (!failure) return std::nullopt;
    return not_run(planned, failure->verdict, failure->detail);
  }

  CaseResult run_case(const PlannedCase& planned) {
    CaseResult result = attempt_case(planned);
    result.seed = case_seed(run_seed_, settings_.spec->name, planned.spec->name);
    // Losing a device costs as much time as a time limit, and predicts as much about later cases.
    const bool lost = worker_ != nullptr && worker_->device_lost();
    if (lost || result.verdict == Verdict::time_limit || result.verdict == Verdict::idle_limit) {
      ++timeouts_;
      last_timeout_ = result.verdict;
    }
    if (worker_ != nullptr && !worker_->alive()) worker_.reset();
    if (needs_worker_of_its_own(planned)) worker_.reset();
    // Memory held by a handle that was not destroyed must not affect later cases.
    if (planned.spec->failing_allocation > 0) worker_.reset();
    if (settings_.device) after_simulation(result);
    return result;
  }

  void after_simulation(const CaseResult& result) {
    // An error on the device stays with the process, as on hardware.
    if (result.verdict == Verdict::device_error || result.verdict == Verdict::time_limit)
      worker_.reset();
    if (result.verdict != Verdict::needs_gpu) return;
    worker_.reset();
    if (needs_gpu_.empty()) needs_gpu_ = result.detail;
  }

  CaseResult attempt_case(const PlannedCase& planned) {
    if (needs_worker_of_its_own(planned)) worker_.reset();
    if (load_failure_) return not_run(planned, load_failure_->verdict, load_failure_->detail);
    if (timeouts_ >= kMostTimeouts) {
      return not_run(
          planned, last_timeout_,
          fmt::format("not attempted: {} other cases ran into their time limit{}", kMostTimeouts,
                      settings_.device ? ", or their simulated device died" : ""));
    }
    if (worker_ == nullptr) {
      load_failure_ = start_worker(planned);
      if (load_failure_) return not_run(planned, load_failure_->verdict, load_failure_->detail);
    }
    if (planned.spec->failing_allocation == kEachAllocation) return refuse_each(planned);
    return planned.spec->deterministic ? run_twice(planned) : run_once(planned);
  }

  // First runs with no allocation refused: that run must be correct, and counts the allocations.
  // Then refuses one a run, until one of these runs fails: all of them, or the first ones and the
  // last if there are very many.
  CaseResult refuse_each(PlannedCase planned) {
    constexpr std::uint32_t kMostRefused = 64;
    CaseSpec spec = *planned.spec;
    planned.spec = &spec;
    spec.failing_allocation = 0;
    Trace trace;
    CaseResult result = run_once(planned, &trace);
    const auto last =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(trace.allocations, kEachAllocation - 1));
    for (std::uint32_t i = 1; i <= std::min(last, kMostRefused); ++i) {
      if (result.verdict != Verdict::ok) return result;
      if (trace.kept_blocks > 0) {  // they must not affect the next run
        if (const auto failure = replace_worker(planned)) return *failure;
      }
      spec.failing_allocation = i < kMostRefused ? i : last;
      result = run_once(planned, &trace);
    }
    return result;
  }

  CaseResult run_once(const PlannedCase& planned, Trace* trace = nullptr) {
    CaseInput input(challenge_, planned, input_.data(), device_ ? device_->data() : nullptr);
    {
      const Charge charge(account_.reference);
      input.draw(case_seed(run_seed_, settings_.spec->name, planned.spec->name));
    }
    ExecuteOptions options;
    options.case_id = ++runs_;
    options.poison_seed = derive(run_seed_, "poison", runs_);
    options.measure_memory = measures_memory(*input.planned().spec);
    options.keep_outputs = trace != nullptr;
    const CaseSpec& spec = *input.planned().spec;
    if ((spec.group == CaseGroup::resource && !settings_.device) || spec.measures_memory)
      options.heap_limit = static_cast<std::uint64_t>(settings_.spec->limits.heap_bytes);
    return execute(world_, *worker_, input, options, account_, trace);
  }

  // Both runs must be correct and agree in every byte. The second uses a fresh worker and places
  // its buffers elsewhere, so that the first run leaves nothing to return again. A simulated device
  // would behave the same twice, so the second run shuffles blocks and warps.
  CaseResult run_twice(const PlannedCase& planned) {
    Trace first, second;
    CaseResult result = run_once(planned, &first);
    if (result.verdict != Verdict::ok) return result;
    if (const auto failure = replace_worker(planned)) return *failure;
    const PlannedCase elsewhere = plan_case(
        challenge_, *planned.spec, device_ ? processes::Memory::device : processes::Memory::host,
        processes::kMostSkew);
    worker_->set_shuffle_seed(derive(run_seed_, "shuffle") | 1);
    result = run_once(elsewhere, &second);
    worker_->set_shuffle_seed(0);
    if (result.verdict == Verdict::ok && first.outputs != second.outputs) {
      result.verdict = Verdict::wrong_answer;
      result.detail = settings_.device ? "the result changes with the order of blocks and warps"
                                       : "two runs on the same input differ in some bit";
    }
    return result;
  }

  const World& world_;
  const Challenge& challenge_;
  processes::WorkerSettings settings_;
  const std::uint64_t run_seed_;
  const std::vector<PlannedCase> cases_;
  TimeAccount& account_;
  processes::Arena input_;
  std::optional<processes::Arena> device_;
  std::unique_ptr<processes::Worker> worker_;
  std::string needs_gpu_;
  std::optional<processes::Outcome> load_failure_;
  std::uint64_t runs_ = 0;
  int timeouts_ = 0;
  Verdict last_timeout_ = Verdict::time_limit;
};

// Runs the spec's cases that `wanted` accepts; drawn cases are drawn from the run's seed.
std::vector<CaseResult> run_all(const Bench& bench, processes::Memory memory, bool stop_at_failure,
                                const std::function<bool(const CaseSpec&)>& wanted) {
  std::deque<draw::Drawn> drawn;  // owns the specs that planned cases point to
  std::vector<PlannedCase> cases;
  for (const CaseSpec& spec : bench.spec().cases) {
    if (!wanted(spec)) continue;
    if (spec.drawn)
      drawn.push_back(draw::draw_case(bench.challenge, bench.spec(), spec, bench.run_seed));
    cases.push_back(plan_case(bench.challenge, spec.drawn ? drawn.back().spec : spec, memory));
  }
  if (cases.empty()) return {};
  const Charge charge(bench.account.total);
  std::vector<CaseResult> results = CorrectnessRun(bench, std::move(cases)).run(stop_at_failure);
  if (!stop_at_failure) shrink_failures(bench, drawn, results);
  return results;
}

}  // namespace

bool CaseFilter::takes(const CaseSpec& spec) const {
  if (!only.empty()) return spec.name == only;
  if (!named.empty()) {
    return (and_correctness && in_correctness(spec.group) && !spec.drawn) ||
           std::ranges::find(named, spec.name) != named.end();
  }
  return !quick || spec.quick;
}

std::uint64_t case_seed(std::uint64_t run_seed, const std::string& challenge,
                        const std::string& case_name) {
  return derive(run_seed, fmt::format("case {}/{}", challenge, case_name));
}

std::uint64_t repetition_seed(std::uint64_t case_seed, std::uint64_t round) {
  return derive(case_seed, "repetition", round);
}

std::vector<CaseResult> run_correctness(const Bench& bench, const CaseFilter& filter) {
  return run_all(bench, processes::Memory::host, filter.stop_at_failure, [&](const CaseSpec& spec) {
    return (filter.timed || spec.group != CaseGroup::timed) && spec.exclusive == filter.exclusive &&
           filter.takes(spec);
  });
}

std::vector<CaseResult> run_simulated(const Bench& bench, const CaseFilter& filter) {
  return run_all(bench, processes::Memory::device, filter.stop_at_failure,
                 [&](const CaseSpec& spec) { return filter.takes(spec); });
}

std::vector<CaseResult> check_on_gpu(const Bench& bench, const CaseFilter& filter) {
  return run_all(bench, processes::Memory::device, filter.stop_at_failure,
                 [&](const CaseSpec& spec) {
                   return spec.group != CaseGroup::timed && !spec.exclusive && filter.takes(spec);
                 });
}

}  // namespace assay::cases
