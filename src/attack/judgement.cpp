#include "attack/judgement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "measure/statistics.h"

namespace assay::attack {
namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

const Dimension* named(const Score& score, const std::string& name) {
  const auto at = std::ranges::find(score.dimensions, name, &Dimension::name);
  return at == score.dimensions.end() ? nullptr : &*at;
}

std::vector<double> seconds_of(std::span<const TimingSample> samples, std::size_t rounds) {
  std::vector<double> seconds;
  for (std::size_t i = 0; i < rounds; ++i) seconds.push_back(*samples[i].submission);
  return seconds;
}

}  // namespace

double Gain::most_noise() const {
  return std::max({kLeastNoise, noise.high, noise.low > 0 ? 1 / noise.low : HUGE_VAL});
}

Observation outcome_of(const CellResult& cell) {
  Observation seen;
  seen.log = cell.build.log;
  Verdict worst = cell.build.verdict;
  seen.detail = worst == Verdict::ok ? "" : first_line(cell.build.log);
  bool ran = false;
  for (const CaseResult& c : cell.cases) {
    ran = ran || was_run(c.verdict);
    if (c.verdict >= worst) continue;
    worst = c.verdict;
    seen.detail = c.name + ": " + first_line(c.detail);
  }
  const bool skipped = worst == Verdict::skipped || (worst == Verdict::ok && !ran);
  seen.outcome = skipped ? kSkipped : worst == Verdict::ok ? kHonest : code(worst);
  return seen;
}

std::optional<Gain> gain_of(std::span<const TimingSample> attack,
                            std::span<const TimingSample> twin,
                            std::span<const TimingSample> other_twin) {
  const std::size_t rounds = std::min({attack.size(), twin.size(), other_twin.size()});
  for (std::size_t i = 0; i < rounds; ++i) {
    if (!attack[i].submission || !twin[i].submission || !other_twin[i].submission)
      return std::nullopt;
  }
  if (rounds == 0) return std::nullopt;
  const std::vector<double> mine = seconds_of(attack, rounds), first = seconds_of(twin, rounds),
                            second = seconds_of(other_twin, rounds);
  std::vector<double> honest;
  for (std::size_t i = 0; i < rounds; ++i) honest.push_back(std::sqrt(first[i] * second[i]));
  const Estimate gain = estimate_ratio(honest, mine), noise = estimate_ratio(first, second);
  return Gain{gain.value, gain.interval, noise.interval};
}

double points_gained(const Score& attack, const Score& twin, const Score* other_twin) {
  double gained = 0;
  for (const Dimension& d : attack.dimensions) {
    const Dimension* const honest = named(twin, d.name);
    const Dimension* const again = other_twin == nullptr ? nullptr : named(*other_twin, d.name);
    if (honest == nullptr || !d.points || !honest->points) continue;
    double low = std::min(*d.points, d.interval.low);
    double high = std::max(*honest->points, honest->interval.high);
    if (again != nullptr && again->points) {
      high = std::max({high, *again->points, again->interval.high});
      low -= std::abs(*again->points - *honest->points);
    }
    gained += std::max(0.0, low - high);
  }
  return gained;
}

std::string complaint(const Attack& attack, const Observation& seen) {
  std::vector<std::string> problems;
  if (seen.outcome == kHung) {
    problems.push_back(fmt::format("the harness hung for {:.0f} s", seen.seconds));
  } else if (seen.outcome == kDied) {
    problems.push_back("the harness died: " + seen.detail);
  } else if (seen.outcome != kSkipped && !attack.may_be(seen.outcome)) {
    problems.push_back(
        fmt::format("{} is wrong{}{}", seen.outcome, seen.detail.empty() ? "" : ": ", seen.detail));
  }
  for (const std::string& text : attack.hidden) {
    if (seen.log.find(text) != std::string::npos)
      problems.push_back(fmt::format("the compiler's log shows '{}'", text));
  }
  // Whoever fails has nothing from being fast.
  if (seen.outcome == kHonest && seen.gain && seen.gain->interval.low > seen.gain->most_noise()) {
    problems.push_back(fmt::format("{:.2f} times as fast as its honest twin, where noise is {:.2f}",
                                   seen.gain->value, seen.gain->most_noise()));
  }
  if (seen.points_gained && *seen.points_gained > kMostPoints) {
    problems.push_back(fmt::format("{:.1f} points more than its honest twin", *seen.points_gained));
  }
  if (!seen.neighbour.empty()) problems.push_back("its neighbour: " + seen.neighbour);
  if (!seen.left_behind.empty())
    problems.push_back(fmt::format("left behind: {}", fmt::join(seen.left_behind, ", ")));
  return fmt::format("{}", fmt::join(problems, "; "));
}

bool is_only_gain(const Attack& attack, const Observation& seen) {
  Observation without = seen;
  without.gain.reset();
  without.points_gained.reset();
  return seen.gain && !complaint(attack, seen).empty() && complaint(attack, without).empty();
}

nlohmann::json to_json(const Observation& seen) {
  nlohmann::json json{
      {"observed", seen.outcome}, {"detail", seen.detail},       {"log", seen.log},
      {"seconds", seen.seconds},  {"neighbour", seen.neighbour}, {"left_behind", seen.left_behind}};
  if (seen.gain) {
    const Gain& g = *seen.gain;
    json["gain"] = {{"times", g.value},
                    {"interval", {g.interval.low, g.interval.high}},
                    {"honest_against_honest", {g.noise.low, g.noise.high}}};
  }
  if (seen.points_gained) json["points_gained"] = *seen.points_gained;
  return json;
}

Observation observation_from(const nlohmann::json& json) {
  Observation seen;
  seen.outcome = json.at("observed");
  seen.detail = json.at("detail");
  seen.log = json.at("log");
  seen.seconds = json.at("seconds");
  seen.neighbour = json.at("neighbour");
  seen.left_behind = json.at("left_behind");
  if (const auto at = json.find("gain"); at != json.end()) {
    const auto interval = [](const nlohmann::json& pair) {
      return Interval{.low = pair.at(0), .high = pair.at(1)};
    };
    seen.gain = Gain{.value = at->at("times"),
                     .interval = interval(at->at("interval")),
                     .noise = interval(at->at("honest_against_honest"))};
  }
  if (const auto at = json.find("points_gained"); at != json.end())
    seen.points_gained = at->get<double>();
  return seen;
}

}  // namespace assay::attack
