#include "cases/exclusive.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cases/correctness.h"
#include "cases/timing.h"
#include "measure/machine.h"
#include "measure/statistics.h"
#include "spec/spec.h"

namespace assay::cases {
namespace {

CaseResult run_alone(const Bench& bench, const CaseSpec& c) {
  ChallengeSpec spec = bench.spec();
  spec.cases = {c};
  Bench alone = bench;
  alone.settings.spec = &spec;
  const ProcessorTicks before = processor_ticks();
  CaseResult result = run_correctness(alone, {.only = c.name, .exclusive = true}).at(0);
  if (!c.pace.of.empty()) result.metrics.push_back({"budget_s", c.params.at("seconds")});
  result.metrics.push_back({kStolenShare, stolen_share(before, processor_ticks())});
  return result;
}

// Seconds par takes for the case that sets the pace.
double time_pace(const Bench& bench, const std::string& of, const std::filesystem::path& par) {
  Bench own = bench;
  own.settings.library = par;
  return time_par(own, *find_case(bench.spec(), of));
}

constexpr double kOwnShare = 0.25;  // of the submission's own time for the pace case

// The submission's time for the case as a multiple of par's. Each repetition is compared with the
// par run beside it, because a busy machine slows both.
std::optional<double> times_par(std::span<const CaseResult> timed, const std::string& name) {
  std::vector<double> ratios;
  for (const CaseResult& result : timed) {
    if (result.name != name || result.verdict != Verdict::ok) continue;
    for (const TimingSample& s : result.samples) {
      if (s.submission && s.par && *s.par > 0) ratios.push_back(*s.submission / *s.par);
    }
  }
  if (ratios.empty()) return std::nullopt;
  return median(ratios);
}

}  // namespace

std::vector<CaseResult> run_exclusive(const Bench& bench, std::span<const CaseSpec* const> cases,
                                      std::span<const CaseResult> timed,
                                      const std::function<std::filesystem::path()>& par) {
  std::map<std::string, double> paces;  // one for all cases that share it
  std::vector<CaseResult> results;
  for (const CaseSpec* c : cases) {
    CaseSpec as_run = *c;
    if (const std::string& of = c->pace.of; !of.empty()) {
      if (!paces.contains(of)) paces[of] = time_pace(bench, of, par());
      // Never more than par's pace, which is also the budget of submissions that were not timed.
      const std::optional<double> slower = times_par(timed, of);
      const double share = slower ? std::min(kOwnShare * *slower, 1.0) : 1.0;
      as_run = paced(*c, share * paces[of]);
    }
    results.push_back(run_alone(bench, as_run));
  }
  return results;
}

}  // namespace assay::cases
