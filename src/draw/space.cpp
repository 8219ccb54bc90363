#include "draw/space.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "assay/error.h"
#include "assay/random.h"
#include "assay/secret.h"
#include "util/text.h"

namespace assay::draw {
namespace {

using nlohmann::json;

// Optional features are many: drawn as often as required ones, they would leave hardly any draw
// without one.
constexpr std::int64_t kRareOneIn = 5;

struct Range {
  std::int64_t from = 0, to = 0;
};

std::optional<Range> range_of(const json& choice) {
  if (!choice.is_object() || !choice.contains("from")) return std::nullopt;
  return Range{choice.at("from"), choice.at("to")};
}

// Draws distances from the lower end log-uniformly, so small ones are as likely as large ones.
std::int64_t draw_from(const Range& range, Random& random) {
  const double span = static_cast<double>(range.to - range.from) + 2;
  const auto distance = static_cast<std::int64_t>(std::exp(random.uniform(0, std::log(span))));
  return std::clamp(range.from + distance - 1, range.from, range.to);
}

json simplest(const json& choice) {
  const auto range = range_of(choice);
  return range ? json(range->from) : choice;
}

bool holds(const json& choice, const json& value) {
  const auto range = range_of(choice);
  if (!range) return choice == value;
  return value.is_number_integer() && value >= range->from && value <= range->to;
}

}  // namespace

json draw(const RandomSpace& space, std::uint64_t seed, bool rare) {
  Random random(derive(seed, "draw"));
  json result = json::object();
  for (const Axis& axis : space.axes) {
    const bool usual = random.uniform() < axis.usual;
    const bool unusual = random.below(kRareOneIn) == 0 && rare && !axis.rare.empty();
    const std::vector<json>& choices = unusual ? axis.rare : axis.choices;
    const auto any = static_cast<std::size_t>(random.below(std::ssize(choices)));
    const json& choice = usual ? axis.choices.front() : choices[any];
    const auto range = range_of(choice);
    result[axis.name] = range ? json(draw_from(*range, random)) : choice;
  }
  return result;
}

std::vector<json> simpler(const Axis& axis, const json& value) {
  std::vector<json> values;
  const auto add = [&](const json& v) {
    if (v != value && std::ranges::find(values, v) == values.end()) values.push_back(v);
  };
  for (const auto* choices : {&axis.choices, &axis.rare}) {
    for (const json& choice : *choices) {
      if (!holds(choice, value)) {
        add(simplest(choice));
        continue;
      }
      if (const auto range = range_of(choice)) {
        const std::int64_t v = value;
        for (std::int64_t less = v - range->from; less > 0; less /= 2) add(v - less);
      }
      return values;
    }
  }
  return values;
}

void check_names(const RandomSpace& space, const json& draw) {
  std::vector<std::string> known{kFailingAllocation};
  for (const Axis& axis : space.axes) known.push_back(axis.name);
  for (const auto& [name, value] : draw.items()) {
    if (std::ranges::find(known, name) == known.end())
      throw Error(unknown_name("axis", name, known));
  }
}

std::optional<CaseSpec> case_of(const Challenge& challenge, const RandomSpace& space,
                                const CaseSpec& placeholder, const json& draw) {
  json whole = space.base;
  whole.update(draw);
  const auto refused = whole.value(kFailingAllocation, 0u);
  whole.erase(kFailingAllocation);
  const auto drawn = challenge.drawn(whole);
  if (!drawn) return std::nullopt;
  CaseSpec spec = placeholder;
  spec.params = drawn->params;
  spec.expect_status = drawn->expect_status;
  if (drawn->expect_status == 0) spec.failing_allocation = refused;
  return spec;
}

Drawn draw_case(const Challenge& challenge, const RandomSpace& space, const CaseSpec& placeholder,
                std::uint64_t seed, bool rare) {
  constexpr std::uint64_t kAttempts = 100;
  for (std::uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    json values = draw(space, derive(seed, "attempt", attempt), rare);
    if (auto spec = case_of(challenge, space, placeholder, values))
      return {std::move(values), std::move(*spec)};
  }
  throw Error(fmt::format("{}: {} draws and not one is a case", placeholder.name, kAttempts));
}

Drawn draw_case(const Challenge& challenge, const ChallengeSpec& spec, const CaseSpec& placeholder,
                std::uint64_t run_seed) {
  const std::uint64_t seed =
      derive(run_seed, fmt::format("draw {}/{}", spec.name, placeholder.name));
  return draw_case(challenge, *spec.random, placeholder, seed, false);
}

}  // namespace assay::draw
