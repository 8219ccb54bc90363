#include "attack/mechanism.h"

#include <algorithm>
#include <array>
#include <utility>

namespace assay::attack {
namespace {

constexpr std::array<std::pair<Mechanism, const char*>, 9> kNames{{
    {Mechanism::verdict, "verdict"},
    {Mechanism::witness, "witness"},
    {Mechanism::log, "log"},
    {Mechanism::speed, "speed"},
    {Mechanism::points, "points"},
    {Mechanism::neighbour, "neighbour"},
    {Mechanism::leftovers, "leftovers"},
    {Mechanism::hang, "hang"},
    {Mechanism::death, "death"},
}};

}  // namespace

const char* name_of(Mechanism mechanism) {
  return std::ranges::find(kNames, mechanism, [](const auto& row) { return row.first; })->second;
}

std::optional<Mechanism> mechanism_named(const std::string& name) {
  const auto* const at =
      std::ranges::find(kNames, name, [](const auto& row) { return row.second; });
  if (at == kNames.end()) return std::nullopt;
  return at->first;
}

std::vector<std::string> mechanism_names() {
  std::vector<std::string> names;
  for (const auto& row : kNames) names.emplace_back(row.second);
  return names;
}

}  // namespace assay::attack
