// Speed on a logarithmic scale between two implementations of the harness that run beside the
// submission: naive earns nothing, par everything.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "grade/dimensions.h"
#include "grade/grade.h"
#include "measure/statistics.h"

namespace assay::grading {
namespace {

bool usable(const std::optional<double>& seconds) { return seconds && *seconds > 0; }

// How many times faster than `slow` the implementation `fast` is, over the repetitions that have
// both.
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

// log(naive / submission) / log(naive / par), written with the ratio to par.
double points_for(double ratio_to_par, double par_over_naive) {
  const double scale = std::log(par_over_naive);
  if (!(scale > 0)) return ratio_to_par >= 1 ? 1 : 0;  // naive is no slower than par: no scale
  return std::clamp(1 + std::log(ratio_to_par) / scale, 0.0, 1.0);
}

struct Timed {
  ShapeSpeed speed;
  Interval points;
  std::string missing;  // why there is no figure
};

Timed measure(const CaseResult& r, std::vector<std::string>& flags) {
  const Speedup to_par = speedup(r.samples, &TimingSample::par, &TimingSample::submission);
  const Speedup par = speedup(r.samples, &TimingSample::naive, &TimingSample::par);
  if (to_par.pairs == 0 || par.pairs == 0) {
    return {{}, {}, fmt::format("not run: {} has no timing of naive, par and submission", r.name)};
  }
  if (to_par.pairs < kFewRepetitions) {
    flags.push_back(fmt::format("below {} repetitions: {}", kFewRepetitions, r.name));
  }
  if (!(par.ratio.value > 1)) {
    flags.push_back(fmt::format("par is no faster than naive: {}", r.name));
  }
  const double ratio = to_par.ratio.value;
  const Interval ci = to_par.ratio.interval;
  return {{r.name, ratio, ci, ratio * par.ratio.value, points_for(ratio, par.ratio.value)},
          {points_for(ci.low, par.ratio.value), points_for(ci.high, par.ratio.value)},
          ""};
}

std::string explain(const std::vector<ShapeSpeed>& speeds, const std::vector<std::string>& failed) {
  std::string why;
  if (!speeds.empty()) {
    std::vector<double> ratios;
    for (const ShapeSpeed& s : speeds) ratios.push_back(s.ratio_to_par);
    why = fmt::format("{:.3g} times the speed of par over {} {}", geometric_mean(ratios),
                      speeds.size(), speeds.size() == 1 ? "shape" : "shapes");
  }
  if (failed.empty()) return why;
  return fmt::format("{}{}failed: {}", why, why.empty() ? "" : "; ", some_of(failed));
}

}  // namespace

Dimension performance(const CaseTable& table, std::vector<ShapeSpeed>& speeds,
                      std::vector<std::string>& flags) {
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
        flags.push_back(fmt::format("wrong on a timed repetition: {}", c.name));
      }
      continue;
    }
    const Timed timed = measure(*r, flags);
    if (!timed.missing.empty()) {
      if (missing.empty()) missing = timed.missing;
      continue;
    }
    speeds.push_back(timed.speed);
    points += c.weight * timed.speed.points;
    interval = interval + c.weight * timed.points;
  }
  if (!missing.empty()) return not_run("performance", max, missing);
  Dimension d =
      scored("performance", max, weight > 0 ? points / weight : 0, explain(speeds, failed));
  if (weight > 0) d.interval = (max / weight) * interval;
  return d;
}

}  // namespace assay::grading
