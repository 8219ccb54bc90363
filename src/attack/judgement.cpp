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

// Describes the missing evidence that the attack's mechanism ran.
std::string missing(const Attack& attack) {
  std::vector<std::string> looked_for;
  for (const Witness& witness : attack.witnesses) {
    switch (witness.kind) {
      case Witness::Kind::line: looked_for.emplace_back("it did not say its witness"); break;
      case Witness::Kind::verdict: looked_for.push_back("not " + witness.text); break;
      case Witness::Kind::finding:
        looked_for.push_back(fmt::format("no finding '{}'", witness.text));
        break;
      case Witness::Kind::compiler:
        looked_for.push_back(fmt::format("no '{}' in the compiler's log", witness.text));
        break;
    }
  }
  return fmt::format("{}", fmt::join(looked_for, ", "));
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

Gain::Told Gain::told() const {
  if (interval.low > most_noise()) return Told::gained;
  // A gain that the interval excludes is ruled out even on a noisy machine.
  const bool hidden = most_noise() > kMostNoise && interval.high > kMostNoise;
  return hidden ? Told::not_told : Told::nothing_gained;
}

std::optional<Gain> worst_of(std::span<const Gain> gains) {
  const auto rank = [](const Gain& g) {
    const Gain::Told told = g.told();
    const int weight = told == Gain::Told::gained ? 2 : told == Gain::Told::not_told ? 1 : 0;
    return std::pair(weight, g.value);
  };
  const auto worst = std::ranges::max_element(gains, {}, rank);
  return worst == gains.end() ? std::nullopt : std::optional(*worst);
}

bool says_witness(const Attack& attack, std::string_view printed) {
  const std::string line = kWitnessLine + attack.id + "\n";
  for (std::size_t at = printed.find(line); at != std::string_view::npos;
       at = printed.find(line, at + 1)) {
    if (at == 0 || printed[at - 1] == '\n') return true;
  }
  return false;
}

bool has_witness(const Attack& attack, const Observation& seen) {
  return std::ranges::any_of(attack.witnesses, [&](const Witness& witness) {
    switch (witness.kind) {
      case Witness::Kind::line: return seen.said_witness;
      case Witness::Kind::verdict: return seen.outcome == witness.text;
      case Witness::Kind::finding: return seen.detail.find(witness.text) != std::string::npos;
      case Witness::Kind::compiler: return seen.log.find(witness.text) != std::string::npos;
    }
    return false;
  });
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

std::vector<Problem> problems(const Attack& attack, const Observation& seen) {
  std::vector<Problem> found;
  const auto add = [&](Mechanism mechanism, const std::string& text) {
    found.push_back({mechanism, text});
  };
  const bool answered = seen.outcome != kHung && seen.outcome != kDied && seen.outcome != kSkipped;
  if (seen.outcome == kHung)
    add(Mechanism::hang, fmt::format("the harness hung for {:.0f} s", seen.seconds));
  if (seen.outcome == kDied) add(Mechanism::death, "the harness died: " + seen.detail);
  if (answered && !attack.may_be(seen.outcome)) {
    add(Mechanism::verdict,
        fmt::format("{} is wrong{}{}", seen.outcome, seen.detail.empty() ? "" : ": ", seen.detail));
  }
  if (answered && !has_witness(attack, seen)) {
    add(Mechanism::witness, fmt::format("its mechanism did not run: {}", missing(attack)));
  }
  for (const std::string& text : attack.hidden) {
    if (seen.log.find(text) != std::string::npos)
      add(Mechanism::log, fmt::format("the compiler's log shows '{}'", text));
  }
  // The speed of an attack that fails does not matter.
  if (seen.outcome == kHonest && seen.gain) {
    const Gain& g = *seen.gain;
    if (g.told() == Gain::Told::gained) {
      add(Mechanism::speed, fmt::format("{:.2f} times as fast as its honest twin, where noise is "
                                        "{:.2f}",
                                        g.value, g.most_noise()));
    } else if (g.told() == Gain::Told::not_told) {
      add(Mechanism::speed, fmt::format("not told: the same honest code twice reads {:.2f}, which "
                                        "would hide a gain",
                                        g.most_noise()));
    }
  }
  if (seen.points_gained && *seen.points_gained > kMostPoints) {
    add(Mechanism::points,
        fmt::format("{:.1f} points more than its honest twin", *seen.points_gained));
  }
  if (!seen.neighbour.empty()) add(Mechanism::neighbour, "its neighbour: " + seen.neighbour);
  if (!seen.left_behind.empty()) {
    add(Mechanism::leftovers, fmt::format("left behind: {}", fmt::join(seen.left_behind, ", ")));
  }
  return found;
}

std::string complaint(const Attack& attack, const Observation& seen) {
  const std::optional<Mechanism> must = mechanism_named(attack.canary);
  std::vector<std::string> texts;
  bool reported = false;
  for (const Problem& problem : problems(attack, seen)) {
    reported = reported || problem.mechanism == must;
    if (problem.mechanism != must) texts.push_back(problem.text);
  }
  if (must && !reported && seen.outcome != kSkipped)
    texts.insert(texts.begin(), fmt::format("the suite is blind: its judgement of {} reported "
                                            "nothing of this canary",
                                            attack.canary));
  return fmt::format("{}", fmt::join(texts, "; "));
}

bool is_up_to_chance(const Attack& attack, const Observation& seen) {
  if (seen.outcome != kHonest) return false;
  return std::ranges::all_of(problems(attack, seen), [](const Problem& problem) {
    return problem.mechanism == Mechanism::speed || problem.mechanism == Mechanism::points;
  });
}

void Tries::add(const Attack& attack, const Observation& seen) {
  ++tries_;
  const bool points = seen.points_gained && *seen.points_gained > kMostPoints;
  const Gain::Told told = seen.gain ? seen.gain->told() : Gain::Told::nothing_gained;
  if (!is_up_to_chance(attack, seen)) {
    decided_ = true;  // the last observation counts
    gained_ = clean_ = 0;
  } else if (told == Gain::Told::gained || points) {
    ++gained_;
  } else if (told == Gain::Told::nothing_gained) {
    ++clean_;
  }
}

bool Tries::settled() const {
  return decided_ || tries_ >= kMostTries || clean_ > gained_ || gained_ >= kBeyondChance + clean_;
}

std::string Tries::text() const {
  return fmt::format("{} of {} tries told a gain, {} told none", gained_, tries_, clean_);
}

nlohmann::json to_json(const Observation& seen) {
  nlohmann::json json{{"observed", seen.outcome},
                      {"detail", seen.detail},
                      {"log", seen.log},
                      {"seconds", seen.seconds},
                      {"witness", seen.said_witness},
                      {"neighbour", seen.neighbour},
                      {"left_behind", seen.left_behind}};
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
  seen.said_witness = json.at("witness");
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
