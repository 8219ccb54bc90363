#include "compare/takeaways.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "compare/bootstrap.h"
#include "compare/fast_p.h"
#include "grade/grade.h"
#include "spec/spec.h"

namespace assay::compare {
namespace {

using Kind = Takeaway::Kind;

constexpr std::size_t kOfAKind = 3;      // at most
constexpr std::size_t kNamesInLine = 4;  // of models

std::string rounded(double points) { return fmt::format("{:.1f}", shown(points)); }

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesInLine); ++i)
    text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > kNamesInLine) text += fmt::format(" and {} more", names.size() - kNamesInLine);
  return text;
}

// A model's lowest and highest challenge.
struct Range {
  const Player* player = nullptr;
  std::size_t low = 0, high = 0, challenges = 0;
  double lowest = 0, highest = 0;
  double width() const { return highest - lowest; }
};

std::optional<Range> range_of(const Field& field, const Player& player, By by) {
  Range range{.player = &player};
  for (std::size_t c = 0; c < field.challenges.size(); ++c) {
    if (!takes_part(field, player, c)) continue;
    const double value = player.cells[c].figure(by).value;
    if (range.challenges == 0 || value < range.lowest) {
      range.lowest = value;
      range.low = c;
    }
    if (range.challenges == 0 || value > range.highest) {
      range.highest = value;
      range.high = c;
    }
    ++range.challenges;
  }
  constexpr std::size_t kEnough = 3;
  if (range.challenges < kEnough) return {};
  return range;
}

std::string range_text(const Field& field, const Range& r) {
  return fmt::format("{}, from {} ({}) to {} ({}) over {} challenges", r.player->model,
                     rounded(r.lowest), field.challenges[r.low]->title, rounded(r.highest),
                     field.challenges[r.high]->title, r.challenges);
}

void consistency(const Field& field, By by, std::vector<Takeaway>& out) {
  std::vector<Range> ranges;
  for (const Player& player : field.players) {
    if (const auto range = range_of(field, player, by)) ranges.push_back(*range);
  }
  if (ranges.size() < 2) return;
  std::ranges::stable_sort(ranges, {}, &Range::width);
  constexpr double kLeast = 1;
  if (ranges.back().width() - ranges.front().width() < kLeast) return;
  out.push_back({Kind::consistency,
                 "Most even over the challenges: " + range_text(field, ranges.front()) + "."});
  out.push_back({Kind::consistency, "Least even: " + range_text(field, ranges.back()) + "."});
}

void attempts_apart(const Field& field, std::vector<Takeaway>& out) {
  struct Spread {
    const Player* player;
    std::size_t challenge;
    double width;
  };
  std::vector<Spread> spreads;
  for (const Player& player : field.players) {
    for (std::size_t c = 0; c < player.cells.size(); ++c) {
      const Cell& cell = player.cells[c];
      if (cell.count() < 2) continue;
      const double width = score_of(*cell.best).value - cell.worst();
      // Differences within timing noise are ignored.
      const Interval best = score_of(*cell.best).interval;
      if (width > 1 && best.low > cell.worst()) spreads.push_back({&player, c, width});
    }
  }
  std::ranges::stable_sort(spreads, std::greater(), &Spread::width);
  for (const Spread& s : spreads) {
    if (out.size() >= kOfAKind) return;
    const Cell& cell = s.player->cells[s.challenge];
    out.push_back({Kind::attempts,
                   fmt::format("{} attempts of {} at {} come to {} to {}: mean {}, standard "
                               "deviation {}.",
                               cell.count(), s.player->model, field.challenges[s.challenge]->title,
                               rounded(cell.worst()), rounded(score_of(*cell.best).value),
                               rounded(cell.mean.value), rounded(cell.spread()))});
  }
}

void challenges_apart(const Field& field, By by, std::vector<Takeaway>& out) {
  struct Column {
    std::size_t challenge, models;
    double deviation, low, high;
  };
  std::vector<Column> columns;
  for (std::size_t c = 0; c < field.challenges.size(); ++c) {
    std::vector<double> values;
    for (const Player& player : field.players) {
      if (takes_part(field, player, c)) values.push_back(player.cells[c].figure(by).value);
    }
    constexpr std::size_t kEnough = 3;
    if (values.size() < kEnough) continue;
    const auto n = static_cast<double>(values.size());
    double mean = 0, squares = 0;
    for (const double v : values) mean += v / n;
    for (const double v : values) squares += (v - mean) * (v - mean);
    columns.push_back({.challenge = c,
                       .models = values.size(),
                       .deviation = std::sqrt(squares / (n - 1)),
                       .low = *std::ranges::min_element(values),
                       .high = *std::ranges::max_element(values)});
  }
  if (columns.size() < 2) return;
  std::ranges::stable_sort(columns, std::greater(), &Column::deviation);
  const auto text = [&](const Column& c) {
    return fmt::format("{} (standard deviation {} over {} models, {} to {})",
                       field.challenges[c.challenge]->title, rounded(c.deviation), c.models,
                       rounded(c.low), rounded(c.high));
  };
  out.push_back({Kind::challenge, "Separates the models most: " + text(columns.front()) + "."});
  out.push_back({Kind::challenge, "Separates them least: " + text(columns.back()) + "."});
}

void traps_apart(const std::vector<TrapFigure>& traps, std::vector<Takeaway>& out) {
  for (const TrapFigure& t : traps) {
    if (out.size() >= kOfAKind || t.use() != TrapFigure::Use::separates) return;
    if (t.models < 3) continue;
    out.push_back({Kind::trap,
                   fmt::format("The trap {} of {} ({}) catches {} of {} answers and tells {:.0f} % "
                               "of the pairs of {} models apart; it caught {}.",
                               t.trap, t.challenge->title, t.catches, t.fallen, t.answers,
                               100 * t.separation, t.models, list_of(t.fell))});
  }
}

// Finds challenges at which a correct submission is slower than a wrong one.
void slow_and_fast(const Field& field, std::vector<Takeaway>& out) {
  const Reference reference = field.device == Device::sim ? Reference::floor : Reference::par;
  struct Case {
    const Player *slow, *fast;
    std::size_t challenge;
    double slow_speed, fast_speed;
  };
  std::vector<Case> found;
  for (std::size_t c = 0; c < field.challenges.size(); ++c) {
    Case best{.slow = nullptr, .fast = nullptr, .challenge = c, .slow_speed = 0, .fast_speed = 0};
    for (const Player& player : field.players) {
      if (!takes_part(field, player, c)) continue;
      const BoardRow& row = *player.cells[c].best;
      const auto speed = speed_against(row, reference);
      if (!speed) continue;
      if (is_correct(row) && (best.slow == nullptr || speed->value < best.slow_speed)) {
        best.slow = &player;
        best.slow_speed = speed->value;
      }
      if (!is_correct(row) && (best.fast == nullptr || speed->value > best.fast_speed)) {
        best.fast = &player;
        best.fast_speed = speed->value;
      }
    }
    constexpr double kClear = 1.5;
    if (best.slow != nullptr && best.fast != nullptr && best.fast_speed > kClear * best.slow_speed)
      found.push_back(best);
  }
  std::ranges::stable_sort(found, std::greater(),
                           [](const Case& c) { return c.fast_speed / c.slow_speed; });
  for (const Case& c : found) {
    if (out.size() >= kOfAKind) return;
    const BoardRow &slow = *c.slow->cells[c.challenge].best,
                   &fast = *c.fast->cells[c.challenge].best;
    out.push_back(
        {Kind::slow_and_fast,
         fmt::format("{}: {} is correct at {:.3g} times the speed of {} and has {} points; {} runs "
                     "at {:.3g} times and is wrong ({}), with {}.",
                     field.challenges[c.challenge]->title, c.slow->model, c.slow_speed,
                     reference == Reference::floor ? "the floor" : "par",
                     rounded(score_of(slow).value), c.fast->model, c.fast_speed,
                     code(fast.score.verdict), rounded(score_of(fast).value))});
  }
}

// Finds cases that several models fail with the same verdict, most models first.
void shared_mistakes(const Field& field, std::vector<Takeaway>& out) {
  struct Mistake {
    std::size_t challenge;
    const CaseSpec* made;
    Verdict verdict;
    std::vector<std::string> models;
    std::size_t passed, of;
  };
  std::vector<Mistake> found;
  std::vector<ChallengeSpec> specs;  // for this device; found cases point into them
  specs.reserve(field.challenges.size());
  for (std::size_t c = 0; c < field.challenges.size(); ++c) {
    specs.push_back(spec_for(field.device, *field.challenges[c]));
    std::map<std::pair<std::string, Verdict>, std::vector<std::string>> failed;
    std::map<std::string, std::size_t> failures;  // with any verdict
    std::size_t models = 0;
    for (const Player& player : field.players) {
      if (!takes_part(field, player, c)) continue;
      const BoardRow& row = *player.cells[c].best;
      const bool ran = row.failed && was_built(row);
      if (!ran) continue;
      ++models;
      for (const FailedCase& f : *row.failed) {
        failed[{f.name, f.verdict}].push_back(player.model);
        ++failures[f.name];
      }
    }
    for (auto& [what, names] : failed) {
      const CaseSpec* made = find_case(specs.back(), what.first);
      const bool counts = made != nullptr && !made->drawn && in_correctness(made->group);
      if (!counts || names.size() < 2) continue;
      found.push_back(
          {c, made, what.second, std::move(names), models - failures[what.first], models});
    }
  }
  std::ranges::stable_sort(found, std::greater(), [](const Mistake& m) {
    return std::pair(m.models.size(), m.made->weight);
  });
  for (const Mistake& m : found) {
    if (out.size() >= kOfAKind) return;
    out.push_back(
        {Kind::shared_mistake,
         fmt::format("{} make the same mistake at {}: {} ({}{}), which {} of {} models {}.",
                     list_of(m.models), field.challenges[m.challenge]->title, m.made->name,
                     code(m.verdict), m.made->catches.empty() ? "" : ": " + m.made->catches,
                     m.passed, m.of, m.passed == 1 ? "passes" : "pass")});
  }
}

}  // namespace

const char* to_string(Kind kind) {
  switch (kind) {
    case Kind::consistency: return "consistency";
    case Kind::attempts: return "attempts";
    case Kind::challenge: return "challenge";
    case Kind::trap: return "trap";
    case Kind::slow_and_fast: return "slow_and_fast";
    case Kind::shared_mistake: return "shared_mistake";
  }
  return "?";
}

std::vector<Takeaway> takeaways(const Field& field, const std::vector<TrapFigure>& traps, By by) {
  std::vector<Takeaway> all;
  const auto add = [&](const auto& find) {
    std::vector<Takeaway> some;
    find(some);
    all.insert(all.end(), some.begin(), some.end());
  };
  add([&](auto& out) { consistency(field, by, out); });
  add([&](auto& out) { attempts_apart(field, out); });
  add([&](auto& out) { challenges_apart(field, by, out); });
  add([&](auto& out) { traps_apart(traps, out); });
  add([&](auto& out) { slow_and_fast(field, out); });
  add([&](auto& out) { shared_mistakes(field, out); });
  return all;
}

}  // namespace assay::compare
