#include "cases/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/error.h"
#include "assay/random.h"
#include "assay/secret.h"
#include "cases/begin_result.h"
#include "cases/case_input.h"
#include "cases/correctness.h"
#include "cases/execute.h"
#include "cases/gpu_clocks.h"
#include "cases/repetitions.h"
#include "measure/machine.h"
#include "measure/statistics.h"
#include "records/simulated_work.h"

namespace assay::cases {
namespace {

constexpr int kPings = 7;
// Time allowed for a submission in the phases before the timed one: kUntimedTimes times par's time
// plus kUntimedSeconds.
constexpr double kUntimedTimes = 20, kUntimedSeconds = 1;

struct Entrant {
  const char* name;
  std::unique_ptr<processes::Worker> worker;
  bool has_run = false;
  double before_s = 0;  // in the phases before the timed one, in its last run
};

// A submission in the case.
struct Contender {
  Entrant entrant;
  CaseResult result;
  std::vector<bool> throttled;  // of the result's samples: the GPU's clocks were held down
  double extended = 0;          // seconds: its share of the rounds beyond those planned
  bool over = false;            // it failed, or has been measured often enough
};

class TimedCase {
 public:
  TimedCase(const Bench& bench, const CaseSpec& spec, const BaselineLibraries& baselines,
            std::span<const std::filesystem::path> submissions, bool quick)
      : bench_(bench),
        planned_(
            plan_case(bench.challenge, spec,
                      bench.settings.device ? processes::Memory::device : processes::Memory::host)),
        input_arena_("input", planned_.layout.input_bytes, processes::Arena::Access::worker_reads),
        device_arena_(device_arena(bench, planned_.layout)),
        input_(bench.challenge, planned_, input_arena_.data(),
               device_arena_ ? device_arena_->data() : nullptr),
        seed_(case_seed(bench.run_seed, bench.spec().name, spec.name)),
        random_(derive(seed_, "turns")),
        repetitions_(spec, quick),
        account_(bench.account),
        naive_(entrant("naive", baselines.naive)),
        par_(entrant("par", baselines.par)) {
    CaseResult result = begin_result(bench.challenge, spec, Verdict::ok);
    result.seed = seed_;
    for (const std::filesystem::path& library : submissions)
      contenders_.push_back({entrant("submission", library), result, {}});
  }

  std::vector<CaseResult> run() {
    load_all();
    measure_protocol();
    const ProcessorTicks before = processor_ticks();
    for (int round = -1; someone_wants(round); ++round) run_round(round);  // -1: warm-up
    const double stolen = stolen_share(before, processor_ticks());
    std::vector<CaseResult> results;
    for (Contender& c : contenders_) {
      c.result.metrics.push_back({kStolenShare, stolen});
      // Naive's traffic to the host, as a yardstick: more than that would be work that a GPU's
      // clock does not see.
      if (naive_work_) add_metrics(c.result.metrics, *naive_work_, kNaivePrefix);
      std::ranges::copy(clocks_.metrics(), std::back_inserter(c.result.metrics));
      leave_out_throttled(c);
      results.push_back(std::move(c.result));
    }
    return results;
  }

 private:
  Entrant entrant(const char* name, const std::filesystem::path& library) {
    const Charge charge(account_.workers);
    processes::WorkerSettings settings = bench_.settings;
    settings.library = library;
    if (settings.device) settings.give_device_memory(planned_.layout.device_bytes);
    ++account_.workers_started;
    return {name, bench_.world.make_worker(settings, input_arena_, planned_.layout.output_bytes,
                                           device_arena_ ? &*device_arena_ : nullptr)};
  }

  static std::optional<processes::Arena> device_arena(const Bench& bench,
                                                      const processes::Layout& layout) {
    if (!bench.settings.device) return std::nullopt;
    return std::make_optional<processes::Arena>("device arena",
                                                layout.device_bytes + processes::kCallbackPayload,
                                                processes::Arena::Access::worker_writes);
  }

  // The state of a real GPU, if it can be read.
  std::optional<GpuState> gpu_state() {
    if (!is_on_gpu() || !bench_.world.gpu_state) return std::nullopt;
    const Charge charge(account_.timing);
    GpuState state = bench_.world.gpu_state();
    clocks_.see(state);
    return state;
  }

  // Drops the submission's time in throttled repetitions, because it says nothing about its speed,
  // as long as enough others remain. The naive and par times, which set the scale, stay.
  static void leave_out_throttled(Contender& c) {
    const auto calm = std::ranges::count(c.throttled, false);
    if (calm < kLeastRepetitions) return;
    for (std::size_t i = 0; i < c.throttled.size(); ++i) {
      if (c.throttled[i]) c.result.samples[i].submission.reset();
    }
  }

  bool is_on_gpu() const { return bench_.settings.device.has_value(); }

  // Whether any submission takes part in the round. Ends the case for those that need no more
  // rounds.
  bool someone_wants(int round) {
    for (Contender& c : contenders_) {
      c.over =
          c.over || !repetitions_.wants(round, {c.result.seconds, c.extended, c.result.samples});
      if (c.over) c.entrant.worker.reset();  // others may need its memory
    }
    return !std::ranges::all_of(contenders_, &Contender::over);
  }

  void load_all() {
    const Charge charge(account_.workers);
    for (Entrant* baseline : {&naive_, &par_}) {
      const processes::Outcome outcome = baseline->worker->load();
      if (outcome.verdict != Verdict::ok)
        baseline_failed(*baseline, outcome.verdict, outcome.detail);
    }
    for (Contender& c : contenders_) {
      const processes::Outcome outcome = c.entrant.worker->load();
      if (outcome.verdict != Verdict::ok) fail(c, outcome.verdict, outcome.detail);
    }
  }

  // Measures an empty call, with par's worker because a submission could answer slowly on purpose.
  void measure_protocol() {
    const Charge charge(account_.timing);
    std::vector<double> pings;
    for (int i = 0; i < kPings; ++i) pings.push_back(par_.worker->ping().seconds);
    protocol_seconds_ = median(pings);
  }

  [[noreturn]] void baseline_failed(const Entrant& baseline, Verdict verdict,
                                    const std::string& detail) const {
    throw Error(fmt::format("{}: the {} implementation failed the timed case {}: {} ({})",
                            bench_.spec().name, baseline.name, planned_.spec->name,
                            description(verdict), detail));
  }

  static void fail(Contender& c, Verdict verdict, const std::string& detail) {
    c.result.verdict = verdict;
    c.result.detail = detail;
    c.over = true;
  }

  // The contenders still in the case, shuffled. A null pointer stands for naive's turn.
  std::vector<Contender*> random_order(int round) {
    std::vector<Contender*> order;
    if (repetitions_.naive_takes_part(round)) order.push_back(nullptr);
    for (Contender& c : contenders_) {
      if (!c.over) order.push_back(&c);
    }
    shuffle(order, random_);
    return order;
  }

  // The first round warms up; it is not recorded.
  void run_round(int round) {
    const double begin = bench_.world.now();
    if (round >= 0) poison_scratch(round);
    {
      const Charge charge(account_.reference);
      input_.draw(repetition_seed(seed_, static_cast<std::uint64_t>(round + 1)));
    }
    const std::vector<Contender*> order = random_order(round);
    std::optional<double> naive;
    for (Contender* c : order) {
      if (c == nullptr) {
        naive = run_baseline(naive_);
      } else {
        run_beside_par(*c, round);
      }
    }
    const double share = (bench_.world.now() - begin) / static_cast<double>(order.size());
    for (Contender* c : order) {
      if (c == nullptr || c->over || round < 0) continue;
      c->result.samples.back().naive = naive;
      if (repetitions_.is_extension(round)) c->extended += share;
    }
  }

  // Poisons the submissions' scratch while the old input is still in place, so that the new one
  // stays unseen.
  void poison_scratch(int round) {
    if (repetitions_.naive_takes_part(round) && naive_.has_run) prepare(naive_);
    const Charge charge(account_.timing);
    for (Contender& c : contenders_) {
      if (c.over) continue;
      const processes::Outcome outcome = c.entrant.worker->prepare();
      if (outcome.verdict != Verdict::ok) fail(c, outcome.verdict, outcome.detail);
    }
  }

  void prepare(Entrant& baseline) {
    const Charge charge(account_.timing);
    const processes::Outcome outcome = baseline.worker->prepare();
    if (outcome.verdict != Verdict::ok) baseline_failed(baseline, outcome.verdict, outcome.detail);
  }

  void run_beside_par(Contender& c, int round) {
    const auto par = [&] {
      if (par_.has_run) prepare(par_);
      return run_baseline(par_);
    };
    TimingSample sample;
    const std::optional<GpuState> before = gpu_state();
    const bool par_first = random_.below(2) == 0;
    if (par_first) sample.par = par();
    sample.submission = run_submission(c, round);
    if (c.over) return;
    if (!par_first) sample.par = par();
    bound_untimed(c, round);
    if (c.over) return;
    if (round < 0) return;
    const std::optional<GpuState> after = gpu_state();
    const std::optional<bool> throttled =
        before && after ? is_throttled(*before, *after) : std::nullopt;
    if (throttled) clocks_.count(*throttled);
    c.result.samples.push_back(sample);
    c.throttled.push_back(throttled.value_or(false));
  }

  // Bounds the time before the timed phase by par's time for it. The bound is wide: it only has to
  // prevent whole results from being computed there. Work that is legitimately done once has timed
  // cases of its own.
  void bound_untimed(Contender& c, int round) {
    const double par = par_.before_s, limit = kUntimedTimes * par + kUntimedSeconds;
    if (c.entrant.before_s <= limit) return;
    fail(
        c, Verdict::time_limit,
        fmt::format("round {}: {:.2f} s in the phases before the timed one, where par takes {:.3g} "
                    "s and {:.3g} s are allowed",
                    round + 1, c.entrant.before_s, par, limit));
  }

  double run_baseline(Entrant& baseline) {
    const CaseResult run = run_once(baseline, !baseline.has_run);  // trusted code: judged once
    if (run.verdict != Verdict::ok) baseline_failed(baseline, run.verdict, run.detail);
    if (&baseline == &naive_) naive_work_ = simulated_work(run.metrics);  // none on the CPU
    return net_seconds(run);
  }

  double run_submission(Contender& c, int round) {
    const CaseResult run = run_once(c.entrant, true);
    c.result.metrics = run.metrics;
    take_worst(run, c.result);
    if (run.verdict != Verdict::ok) {
      fail(c, run.verdict,
           round < 0 ? run.detail : fmt::format("repetition {}: {}", round + 1, run.detail));
    } else if (round >= 0) {
      c.result.seconds += run.seconds;
    }
    return net_seconds(run);
  }

  CaseResult run_once(Entrant& entrant, bool judge) {
    ExecuteOptions options;
    options.case_id = ++runs_;
    options.poison_seed = derive(seed_, "poison", runs_);
    options.make_resident = !entrant.has_run;
    if (!is_on_gpu()) options.flush_caches = bench_.world.flush_caches;  // a GPU has its own
    options.judge = judge;
    entrant.has_run = true;
    Trace trace;
    CaseResult result = execute(bench_.world, *entrant.worker, input_, options, account_, &trace);
    entrant.before_s = trace.before_s;
    return result;
  }

  double net_seconds(const CaseResult& run) const {
    return std::max(run.seconds - (is_on_gpu() ? 0 : protocol_seconds_), 1e-9);
  }

  static void take_worst(const CaseResult& run, CaseResult& result) {
    if (run.error && (!result.error || *run.error > *result.error)) {
      result.error = run.error;
      result.bound = run.bound;
    }
    if (run.accuracy) result.accuracy = std::max(result.accuracy.value_or(0), *run.accuracy);
  }

  const Bench& bench_;
  PlannedCase planned_;
  processes::Arena input_arena_;
  std::optional<processes::Arena> device_arena_;
  CaseInput input_;
  std::uint64_t seed_;
  Random random_;
  Repetitions repetitions_;
  TimeAccount& account_;
  Entrant naive_, par_;
  std::optional<SimulatedWork> naive_work_;
  GpuClocks clocks_;
  std::vector<Contender> contenders_;
  std::uint64_t runs_ = 0;
  double protocol_seconds_ = 0;
};

}  // namespace

std::vector<CaseResult> run_timed(const Bench& bench, const CaseSpec& spec,
                                  const BaselineLibraries& baselines,
                                  std::span<const std::filesystem::path> submissions, bool quick) {
  const Charge charge(bench.account.total);
  bench.account.cases += static_cast<int>(submissions.size());
  return TimedCase(bench, spec, baselines, submissions, quick).run();
}

double time_par(const Bench& bench, const CaseSpec& spec) {
  TimeAccount& account = bench.account;
  const Charge charge(account.total);
  const std::uint64_t seed = case_seed(bench.run_seed, bench.spec().name, spec.name);
  const PlannedCase planned = plan_case(bench.challenge, spec);
  processes::Arena arena("input", planned.layout.input_bytes,
                         processes::Arena::Access::worker_reads);
  CaseInput input(bench.challenge, planned, arena.data());
  {
    const Charge drawing(account.reference);
    input.draw(seed);
  }
  const auto worker =
      bench.world.make_worker(bench.settings, arena, planned.layout.output_bytes, nullptr);
  ++account.workers_started;
  if (const processes::Outcome loaded = worker->load(); loaded.verdict != Verdict::ok) {
    throw Error(fmt::format("{}: the par implementation does not load: {}", bench.spec().name,
                            loaded.detail));
  }
  ExecuteOptions options;
  options.case_id = 1;
  options.poison_seed = derive(seed, "poison", 1);
  const CaseResult run = execute(bench.world, *worker, input, options, account);
  if (run.verdict != Verdict::ok) {
    throw Error(fmt::format("{}: the par implementation failed the case {}, which sets a pace: {}",
                            bench.spec().name, spec.name, run.detail));
  }
  return run.seconds;
}

}  // namespace assay::cases
