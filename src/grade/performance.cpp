// Speed on a logarithmic scale between two reference implementations that run beside the
// submission, and up to the floor: naive earns nothing, par most, the floor full points.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "assay/gpu_state.h"
#include "grade/dimensions.h"
#include "grade/grade.h"
#include "measure/machine.h"
#include "measure/statistics.h"
#include "records/floor.h"
#include "records/lookup.h"

namespace assay::grading {
namespace {

bool usable(const std::optional<double>& seconds) { return seconds && *seconds > 0; }

// The speed of `fast` as a multiple of that of `slow`, over the repetitions that have both.
struct Speedup {
  std::size_t pairs = 0;
  Estimate ratio;
};

Speedup speedup(const std::vector<TimingSample>& samples, std::optional<double> TimingSample::*slow,
                std::optional<double> TimingSample::*fast) {
  std::vector<double> a, b;
  for (const TimingSample& s : samples) {
    if (!usable(s.*slow) || !usable(s.*fast)) continue;
    a.push_back(*(s.*slow));
    b.push_back(*(s.*fast));
  }
  if (a.empty()) return {};
  return {a.size(), estimate_ratio(a, b)};
}

double par_seconds(const std::vector<TimingSample>& samples) {
  std::vector<double> seconds;
  for (const TimingSample& s : samples) {
    if (usable(s.par)) seconds.push_back(*s.par);
  }
  return median(seconds);
}

// Tolerance for the floor: the roofline is measured up to a minute apart from the case, on a
// machine that may be shared.
constexpr double kBeyondFloor = 1.5;

Timed measure(const CaseResult& r, std::vector<Note>& flags) {
  const std::vector<TimingSample> calm = calm_rounds(r.samples);
  const Speedup to_par = speedup(calm, &TimingSample::par, &TimingSample::submission);
  Speedup par = speedup(calm, &TimingSample::naive, &TimingSample::par);
  // Naive runs in few rounds, which may all be disturbed, and only sets the scale.
  if (par.pairs == 0) par = speedup(r.samples, &TimingSample::naive, &TimingSample::par);
  if (to_par.pairs == 0 || par.pairs == 0) {
    return {{}, {}, fmt::format("not run: {} has no timing of naive, par and submission", r.name)};
  }
  if (to_par.pairs < kFewRepetitions) {
    flags.push_back({Note::Kind::few_repetitions,
                     fmt::format("below {} repetitions: {}", kFewRepetitions, r.name)});
  }
  if (!(par.ratio.value > 1)) {
    flags.push_back(
        {Note::Kind::par_not_faster, fmt::format("par is no faster than naive: {}", r.name)});
  }
  if (std::string why = work_on_host(r); !why.empty())
    return {.speed = {}, .points = {}, .missing = "", .worthless = std::move(why)};
  const double ratio = to_par.ratio.value;
  const Interval ci = to_par.ratio.interval;
  SpeedScale scale{.par_over_naive = par.ratio.value};
  const auto floor = floor_seconds(r.metrics);
  if (floor) scale.floor_over_par = par_seconds(calm) / *floor;
  // If par itself beats the floor, the floor does not bound this case: the data fits into caches.
  if (floor && scale.floor_over_par > 1 && ci.low > kBeyondFloor * scale.floor_over_par) {
    const double seconds = *floor * scale.floor_over_par / ratio;
    const std::string why = fmt::format(
        "{} took {:.3g} ms, where moving its data, or its arithmetic, takes this machine {:.3g} "
        "ms: "
        "what it does is not the task; earns nothing until that is explained",
        r.name, 1e3 * seconds, 1e3 * *floor);
    flags.push_back({Note::Kind::other, why});
    return {.speed = {}, .points = {}, .missing = "", .worthless = "faster than its floor"};
  }
  return {.speed = {.case_name = r.name,
                    .ratio_to_par = ratio,
                    .ratio_interval = ci,
                    .ratio_to_naive = ratio * par.ratio.value,
                    .points = share_of_speed(ratio, scale),
                    .ratio_to_floor = floor ? ratio / scale.floor_over_par : 0},
          .points = {share_of_speed(ci.low, scale), share_of_speed(ci.high, scale)},
          .missing = ""};
}

// Share of CPU time stolen by other virtual machines during timing: small shares pass as noise,
// larger ones move the score beyond its interval.
constexpr double kMuchStolen = 0.1;

// Share of throttled repetitions worth a flag. They are left out if enough others remain.
constexpr double kMuchThrottled = 0.1;

void flag_stolen_time(const CaseTable& table, std::vector<Note>& flags) {
  double most = 0;
  for (const CaseSpec& c : table.spec().cases) {
    const CaseResult* r = table.ran(c.name);
    const double* stolen = r == nullptr ? nullptr : find_metric(r->metrics, kStolenShare);
    if (stolen != nullptr) most = std::max(most, *stolen);
  }
  if (most > kMuchStolen) {
    flags.push_back(
        {Note::Kind::stolen_time,
         fmt::format("other virtual machines took {:.0f} % of the processors while it was timed",
                     100 * most)});
  }
}

void flag_throttling(const CaseTable& table, std::vector<Note>& flags) {
  for (const CaseSpec& c : table.spec().cases) {
    const CaseResult* r = table.ran(c.name);
    const double* share = r == nullptr ? nullptr : find_metric(r->metrics, kThrottledShare);
    if (share == nullptr || *share <= kMuchThrottled) continue;
    flags.push_back(
        {Note::Kind::throttled,
         fmt::format("the GPU's clocks were held down in {:.0f} % of the repetitions of {}",
                     100 * *share, c.name)});
  }
}

// The management library may be missing, or say nothing of a part of a GPU.
void flag_unwatched_clocks(const CaseTable& table, std::vector<Note>& flags) {
  if (table.cell().key.device != Device::cuda) return;
  std::vector<std::string> unwatched;
  for (const CaseSpec& c : table.spec().cases) {
    const CaseResult* r = table.ran(c.name);
    if (c.group != CaseGroup::timed || r == nullptr || r->samples.empty()) continue;
    if (find_metric(r->metrics, kThrottledShare) == nullptr) unwatched.push_back(c.name);
  }
  if (unwatched.empty()) return;
  flags.push_back({Note::Kind::clocks_unwatched,
                   fmt::format("nothing tells whether the GPU's clocks were held down in {}",
                               some_of(unwatched))});
}

std::string explain(const std::vector<ShapeSpeed>& speeds) {
  std::vector<double> ratios;
  for (const ShapeSpeed& s : speeds) ratios.push_back(s.ratio_to_par);
  return fmt::format("{:.3g} times the speed of par over {} {}", geometric_mean(ratios),
                     speeds.size(), speeds.size() == 1 ? "shape" : "shapes");
}

}  // namespace

double share_of_speed(double ratio_to_par, const SpeedScale& scale) {
  const double below = std::log(scale.par_over_naive),
               above = scale.floor_over_par > 1 ? std::log(scale.floor_over_par) : 0;
  if (!(below > 0)) return ratio_to_par >= 1 ? 1 : 0;  // naive is not slower: no scale
  const double par_share = std::max(kParShare, below / (below + above));
  const double ratio = std::log(ratio_to_par);
  if (!(ratio > 0)) return std::max(0.0, par_share * (1 + ratio / below));
  return above > 0 ? std::min(1.0, par_share + (1 - par_share) * ratio / above) : 1;
}

Dimension performance_of(const CaseTable& table,
                         const std::function<Timed(const CaseResult&)>& measure,
                         const std::function<std::string()>& explain,
                         std::vector<ShapeSpeed>& speeds, std::vector<Note>& flags) {
  const ChallengeSpec& spec = table.spec();
  const double max = spec.weights.performance;
  std::vector<std::string> names;
  for (const CaseSpec& c : spec.cases) {
    if (c.group == CaseGroup::timed) names.push_back(c.name);
  }
  if (names.empty()) return not_run("performance", max, "the challenge times no shape");
  std::string missing = table.missing(names);
  double weight = 0, points = 0;
  Interval interval;
  std::vector<std::string> failed;
  for (const CaseSpec& c : spec.cases) {
    const CaseResult* r = table.ran(c.name);
    if (c.group != CaseGroup::timed || r == nullptr) continue;
    weight += c.weight;
    if (r->verdict != Verdict::ok) {
      failed.push_back(fmt::format("{} ({})", c.name, code(r->verdict)));
      if (r->verdict == Verdict::wrong_answer) {
        flags.push_back(
            {Note::Kind::wrong_when_timed, fmt::format("wrong on a timed repetition: {}", c.name)});
      }
      continue;
    }
    const Timed timed = measure(*r);
    if (!timed.missing.empty()) {
      if (missing.empty()) missing = timed.missing;
      continue;
    }
    if (!timed.worthless.empty()) {
      failed.push_back(fmt::format("{} ({})", c.name, timed.worthless));
      continue;
    }
    speeds.push_back(timed.speed);
    points += c.weight * timed.speed.points;
    interval = interval + c.weight * timed.points;
  }
  if (!missing.empty()) return not_run("performance", max, missing);
  std::string why = speeds.empty() ? "" : explain();
  if (!failed.empty()) why += fmt::format("{}failed: {}", why.empty() ? "" : "; ", some_of(failed));
  Dimension d = scored("performance", max, weight > 0 ? points / weight : 0, why);
  if (weight > 0) d.interval = (max / weight) * interval;
  return d;
}

Dimension performance(const CaseTable& table, std::vector<ShapeSpeed>& speeds,
                      std::vector<Note>& flags) {
  flag_stolen_time(table, flags);
  flag_throttling(table, flags);
  flag_unwatched_clocks(table, flags);
  return performance_of(
      table, [&](const CaseResult& r) { return measure(r, flags); },
      [&] { return explain(speeds); }, speeds, flags);
}

}  // namespace assay::grading
