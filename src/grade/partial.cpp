#include "grade/partial.h"

#include <fmt/format.h>

#include <algorithm>

#include "spec/spec.h"
#include "util/text.h"

namespace assay {
namespace {

// Sums up the lost share of a dimension's weight, item by item.
class LostShare {
 public:
  void add(double weight, bool lost) {
    all_ += weight;
    if (lost) lost_ += weight;
  }
  double share() const { return all_ > 0 ? lost_ / all_ : 0; }

 private:
  double all_ = 0, lost_ = 0;
};

double lost_of_group(const ChallengeSpec& whole, const ChallengeSpec& here, CaseGroup group) {
  LostShare lost;
  for (const CaseSpec& c : whole.cases) {
    if (c.group == group) lost.add(c.weight, find_case(here, c.name) == nullptr);
  }
  return lost.share();
}

double lost_of_correctness(const ChallengeSpec& whole, const ChallengeSpec& here) {
  double share = 0;
  for (const auto& [group, weight] : whole.correctness_shares)
    share += weight * lost_of_group(whole, here, group);
  return share;
}

double lost_of_resources(const ChallengeSpec& whole, const ChallengeSpec& here) {
  LostShare lost;
  for (const ResourceRule& rule : whole.resources) {
    const bool kept =
        std::ranges::find(here.resources, rule.name, &ResourceRule::name) != here.resources.end();
    lost.add(rule.weight, !kept);
  }
  return lost.share();
}

double lost_of_completeness(const ChallengeSpec& whole, const ChallengeSpec& here) {
  LostShare lost;
  for (const Capability& capability : whole.capabilities) {
    const bool kept = std::ranges::any_of(here.cases, [&](const CaseSpec& c) {
      return c.group == CaseGroup::completeness && c.capability == capability.name;
    });
    lost.add(capability.weight, !kept);
  }
  return lost.share();
}

}  // namespace

DeviceGap device_gap(const ChallengeSpec& whole, Device device) {
  DeviceGap gap;
  const ChallengeSpec here = spec_for(device, whole);
  const auto lose = [&](const char* dimension, double weight, double share) {
    const double points = weight * share;
    constexpr double kLeast = 0.05;
    if (points < kLeast) return;
    gap.points += points;
    gap.missing.push_back(
        fmt::format("{} ({} of {} points)", dimension, tenths(points), tenths(weight)));
  };
  const Weights& w = whole.weights;
  lose("correctness", w.correctness, lost_of_correctness(whole, here));
  lose("performance", w.performance, lost_of_group(whole, here, CaseGroup::timed));
  lose("resources", w.resources, lost_of_resources(whole, here));
  lose("completeness", w.completeness, lost_of_completeness(whole, here));
  bool core = false;
  for (const CaseSpec& c : whole.cases) {
    if (c.group != CaseGroup::core || find_case(here, c.name) != nullptr) continue;
    core = true;
    gap.missing.push_back("core case " + c.name);
  }
  gap.partial = core || gap.points > kPartialShare * w.correctness;
  return gap;
}

}  // namespace assay
