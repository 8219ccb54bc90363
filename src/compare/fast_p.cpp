#include "compare/fast_p.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compare/bootstrap.h"
#include "records/share_of_floor.h"

namespace assay::compare {
namespace {

constexpr std::pair<Reference, const char*> kReferences[] = {
    {Reference::par, "par"}, {Reference::naive, "naive"}, {Reference::floor, "floor"}};

bool is_positive(const ShapeSpeed& s) {
  const auto positive = [](double v) { return std::isfinite(v) && v > 0; };
  return positive(s.ratio_to_par) && positive(s.ratio_interval.low) &&
         positive(s.ratio_interval.high) && positive(s.ratio_to_naive);
}

// REQUIRES speeds.
bool knows(const BoardRow& row, Reference reference) {
  const auto& speeds = row.score.speeds;
  const bool sim = row.key.device == Device::sim;
  switch (reference) {
    case Reference::naive: return true;
    // Without a par kernel the floor stands in for par.
    case Reference::par:
      return !sim || std::ranges::any_of(speeds, [](const ShapeSpeed& s) {
        return s.ratio_to_par != share_of_floor(s);
      });
    case Reference::floor:
      return sim ||
             std::ranges::all_of(speeds, [](const ShapeSpeed& s) { return s.ratio_to_floor > 0; });
  }
  return false;
}

}  // namespace

const char* to_string(Reference reference) {
  for (const auto& [known, name] : kReferences) {
    if (known == reference) return name;
  }
  return "?";
}

std::optional<Estimate> speed_against(const BoardRow& row, Reference reference) {
  const auto& speeds = row.score.speeds;
  if (speeds.empty() || !knows(row, reference)) return {};
  if (!std::ranges::all_of(speeds, &is_positive)) return {};
  std::vector<double> value, low, high;
  for (const ShapeSpeed& s : speeds) {
    // Ratios to naive and the floor have no interval: par's is scaled for them.
    const double ratio = reference == Reference::naive   ? s.ratio_to_naive
                         : reference == Reference::floor ? share_of_floor(s)
                                                         : s.ratio_to_par;
    const double scale = ratio / s.ratio_to_par;
    value.push_back(ratio);
    low.push_back(scale * s.ratio_interval.low);
    high.push_back(scale * s.ratio_interval.high);
  }
  return Estimate{geometric_mean(value), {geometric_mean(low), geometric_mean(high)}};
}

std::optional<FastRate> fast_p(const Player& player, Device device, Reference reference, double p) {
  if (device == Device::sim && reference == Reference::par) return {};
  FastRate rate;
  double sum = 0;
  std::size_t challenges = 0;
  bool known = device == Device::sim || reference != Reference::floor;
  for (const Cell& cell : player.cells) {
    if (cell.count() == 0) continue;
    std::size_t fast = 0;
    for (const BoardRow* row : cell.graded) {
      const auto speed = speed_against(*row, reference);
      known = known || speed;
      fast += speed && is_correct(*row) && speed->value > p ? 1 : 0;
    }
    ++challenges;
    sum += static_cast<double>(fast) / static_cast<double>(cell.count());
    rate.fast += fast;
    rate.attempts += cell.count();
  }
  if (challenges == 0 || !known) return {};
  rate.value = sum / static_cast<double>(challenges);
  const auto attempts = static_cast<double>(rate.attempts);
  rate.interval = wilson(rate.value * attempts, attempts);
  return rate;
}

std::optional<SpeedMean> mean_speed(const Player& player, Reference reference) {
  std::vector<double> value, low, high;
  for (const Cell& cell : player.cells) {
    if (cell.count() == 0 || !is_correct(*cell.best)) continue;
    const auto speed = speed_against(*cell.best, reference);
    if (!speed) continue;
    value.push_back(speed->value);
    low.push_back(speed->interval.low);
    high.push_back(speed->interval.high);
  }
  if (value.empty()) return {};
  return SpeedMean{{geometric_mean(value), {geometric_mean(low), geometric_mean(high)}},
                   value.size()};
}

}  // namespace assay::compare
