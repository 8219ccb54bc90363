#include "run/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "assay/random.h"
#include "measure/statistics.h"
#include "run/case_input.h"
#include "run/execute.h"
#include "util/files.h"

namespace assay::run {
namespace {

// A slow submission is measured less often: repetitions stop when its calls have taken this long,
// but not before kLeastRepetitions.
constexpr double kSubmissionBudget = 8;
constexpr int kLeastRepetitions = 3, kQuickRepetitions = 3;
// Where the machine is busy the repetitions go on, up to so many times those of the spec and for so
// long, until the interval of the submission's speed relative to par is this narrow over at least
// so many rounds that were not disturbed.
constexpr double kNarrow = 1.06;  // high / low
constexpr std::size_t kLeastCalm = 5;
constexpr int kMostTimes = 4;
constexpr double kExtensionBudget = 1.5;
constexpr int kPings = 7;

struct Entrant {
  const char* name;
  std::unique_ptr<WorkerProcess> worker;
  int repetitions;
  std::optional<double> TimingSample::*seconds;
  bool has_run = false;
};

class TimedCase {
 public:
  TimedCase(const Challenge& challenge, const CaseSpec& spec, const WorkerSettings& settings,
            const TimedLibraries& libraries, std::uint64_t seed, bool quick, TimeAccount& account)
      : planned_(plan_case(challenge, spec)),
        input_arena_("input", planned_.layout.input_bytes, Arena::Access::worker_reads),
        input_(challenge, planned_, input_arena_.data()),
        seed_(seed),
        random_(substream(seed, 0x04de4)),
        quick_(quick),
        account_(account) {
    const int repetitions = quick ? kQuickRepetitions : spec.repetitions;
    const int naive = quick ? 1 : spec.naive_repetitions;
    add("naive", settings, libraries.naive, naive, &TimingSample::naive);
    add("par", settings, libraries.par, repetitions, &TimingSample::par);
    add("submission", settings, libraries.submission, repetitions, &TimingSample::submission);
    result_.name = spec.name;
    result_.group = spec.group;
    result_.shape = challenge.shape(spec);
    result_.seed = seed;
    result_.verdict = Verdict::ok;
  }

  CaseResult run() {
    if (!load_all()) return result_;
    measure_protocol();
    for (int round = -1; wants(round); ++round) {  // -1: warm-up
      if (!run_round(round)) break;
      if (round + 1 >= kLeastRepetitions && result_.seconds > kSubmissionBudget) break;
    }
    return result_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Whether a further round is due. Naive keeps to its repetitions: it only sets the scale.
  bool wants(int round) {
    const int planned = entrants_.back().repetitions;
    if (round < planned) return true;
    if (quick_ || round >= kMostTimes * planned) return false;
    const auto now = Clock::now();
    if (round == planned) extended_since_ = now;
    if (std::chrono::duration<double>(now - extended_since_).count() > kExtensionBudget)
      return false;
    return !settled();
  }

  bool settled() const {
    const std::vector<TimingSample> calm = calm_rounds(result_.samples);
    if (calm.size() < kLeastCalm) return false;
    std::vector<double> par, submission;
    for (const TimingSample& s : calm) {
      par.push_back(*s.par);
      submission.push_back(*s.submission);
    }
    const Interval interval = estimate_ratio(par, submission).interval;
    return interval.high <= kNarrow * interval.low;
  }

  // Whether the entrant takes part in a round. Naive has no warm-up where it is measured only once,
  // because it is slow and only sets the scale.
  bool takes_part(const Entrant& entrant, int round) const {
    if (entrant.seconds != &TimingSample::naive) return true;
    return round < 0 ? quick_ || entrant.repetitions > 1 : round < entrant.repetitions;
  }

  bool load_all() {
    const Charge charge(account_.workers);
    for (Entrant& entrant : entrants_) {
      const Outcome outcome = entrant.worker->load();
      if (outcome.verdict != Verdict::ok && !blame(entrant, outcome.verdict, outcome.detail)) {
        return false;
      }
    }
    return true;
  }

  void add(const char* name, const WorkerSettings& settings, const std::filesystem::path& library,
           int repetitions, std::optional<double> TimingSample::*seconds) {
    const Charge charge(account_.workers);
    WorkerSettings own = settings;
    own.library = library;
    entrants_.push_back(
        {name, std::make_unique<WorkerProcess>(own, input_arena_, planned_.layout.output_bytes),
         repetitions, seconds});
    ++account_.workers_started;
  }

  // The time of a call that does nothing, taken with par's worker because the submission could
  // answer slowly on purpose.
  void measure_protocol() {
    const Charge charge(account_.timing);
    std::vector<double> pings;
    for (int i = 0; i < kPings; ++i) pings.push_back(entrants_[1].worker->ping().seconds);
    protocol_seconds_ = median(pings);
  }

  // Records the submission's failure (false), or throws when a baseline failed.
  bool blame(const Entrant& entrant, Verdict verdict, const std::string& detail) {
    if (entrant.seconds != &TimingSample::submission) {
      throw Error(fmt::format("{}: the {} implementation failed the timed case {}: {} ({})",
                              planned_.spec->name, entrant.name, planned_.spec->name,
                              description(verdict), detail));
    }
    result_.verdict = verdict;
    result_.detail = detail;
    return false;
  }

  std::vector<Entrant*> random_order() {
    std::vector<Entrant*> order;
    for (Entrant& e : entrants_) order.push_back(&e);
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1],
                order[static_cast<std::size_t>(random_.below(static_cast<std::int64_t>(i)))]);
    }
    return order;
  }

  // False when the case is over. The first round warms up; it is not recorded.
  bool run_round(int round) {
    if (round >= 0) {
      // Scratch is poisoned while the old input still stands; the new one must stay unseen.
      const Charge charge(account_.timing);
      for (Entrant& e : entrants_) {
        if (!takes_part(e, round) || !e.has_run) continue;
        const Outcome outcome = e.worker->prepare();
        if (outcome.verdict != Verdict::ok && !blame(e, outcome.verdict, outcome.detail))
          return false;
      }
    }
    {
      const Charge charge(account_.reference);
      input_.draw(substream(seed_, static_cast<std::uint64_t>(round + 1)));
    }
    TimingSample sample;
    for (Entrant* entrant : random_order()) {
      if (!takes_part(*entrant, round)) continue;
      if (!run_entrant(*entrant, round, sample)) return false;
    }
    if (round >= 0) result_.samples.push_back(sample);
    return true;
  }

  bool run_entrant(Entrant& entrant, int round, TimingSample& sample) {
    ExecuteOptions options;
    options.case_id = static_cast<std::uint64_t>(round + 2);
    options.poison_seed = substream(seed_, random_.next());
    options.make_resident = !entrant.has_run;
    options.flush_caches = true;
    const bool submission = entrant.seconds == &TimingSample::submission;
    options.judge = submission || !entrant.has_run;  // the baselines are ours: once is enough
    entrant.has_run = true;
    const CaseResult run = execute(*entrant.worker, input_, options, account_);
    if (submission) {
      result_.metrics = run.metrics;
      take_worst(run);
    }
    if (run.verdict != Verdict::ok) {
      return blame(
          entrant, run.verdict,
          round < 0 ? run.detail : fmt::format("repetition {}: {}", round + 1, run.detail));
    }
    if (round < 0) return true;
    sample.*entrant.seconds = std::max(run.seconds - protocol_seconds_, 1e-9);
    if (submission) result_.seconds += run.seconds;
    return true;
  }

  void take_worst(const CaseResult& run) {
    if (run.error && (!result_.error || *run.error > *result_.error)) {
      result_.error = run.error;
      result_.bound = run.bound;
    }
    if (run.accuracy) result_.accuracy = std::max(result_.accuracy.value_or(0), *run.accuracy);
  }

  PlannedCase planned_;
  Arena input_arena_;
  CaseInput input_;
  std::uint64_t seed_;
  Random random_;
  bool quick_;
  Clock::time_point extended_since_;
  TimeAccount& account_;
  std::vector<Entrant> entrants_;  // naive, par, submission
  double protocol_seconds_ = 0;
  CaseResult result_;
};

}  // namespace

CaseResult run_timed(const Challenge& challenge, const CaseSpec& spec,
                     const WorkerSettings& settings, const TimedLibraries& libraries,
                     std::uint64_t run_seed, bool quick, TimeAccount& account) {
  const Charge charge(account.total);
  ++account.cases;
  const std::uint64_t seed = case_seed(run_seed, settings.spec->name, spec.name);
  return TimedCase(challenge, spec, settings, libraries, seed, quick, account).run();
}

double time_par(const Challenge& challenge, const CaseSpec& spec, const WorkerSettings& settings,
                std::uint64_t run_seed, TimeAccount& account) {
  const Charge charge(account.total);
  const std::uint64_t seed = case_seed(run_seed, settings.spec->name, spec.name);
  const PlannedCase planned = plan_case(challenge, spec);
  Arena arena("input", planned.layout.input_bytes, Arena::Access::worker_reads);
  CaseInput input(challenge, planned, arena.data());
  {
    const Charge drawing(account.reference);
    input.draw(seed);
  }
  std::array<double, 3> seconds{};
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    WorkerProcess worker(settings, arena, planned.layout.output_bytes);
    ++account.workers_started;
    if (const Outcome loaded = worker.load(); loaded.verdict != Verdict::ok) {
      throw Error(fmt::format("{}: the par implementation does not load: {}", settings.spec->name,
                              loaded.detail));
    }
    ExecuteOptions options;
    options.case_id = i + 1;
    options.poison_seed = substream(seed, i + 1);
    options.judge = i == 0;  // it is ours: once is enough
    const CaseResult run = execute(worker, input, options, account);
    if (run.verdict != Verdict::ok) {
      throw Error(
          fmt::format("{}: the par implementation failed the case {}, which sets a pace: {}",
                      settings.spec->name, spec.name, run.detail));
    }
    seconds[i] = run.seconds;
  }
  return median(seconds);
}

}  // namespace assay::run
