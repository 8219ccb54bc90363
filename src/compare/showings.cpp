#include "compare/showings.h"

#include <algorithm>

namespace assay::compare {
namespace {

// The median of the sorted values without the one at `left_out`. REQUIRES two values or more.
double median_without(const std::vector<double>& sorted, std::size_t left_out) {
  const auto other = [&](std::size_t i) { return sorted[i < left_out ? i : i + 1]; };
  const std::size_t others = sorted.size() - 1, middle = others / 2;
  return others % 2 == 1 ? other(middle) : (other(middle - 1) + other(middle)) / 2;
}

}  // namespace

Showings::Showings(const Field& field, By by) : by_(by), scores_(field.challenges.size()) {
  for (std::size_t c = 0; c < scores_.size(); ++c) {
    for (const Player& player : field.players) {
      if (takes_part(field, player, c)) scores_[c].push_back(player.cells[c].figure(by).value);
    }
    std::ranges::sort(scores_[c]);
  }
}

std::vector<Showing> Showings::of(const Field& field, const Player& player) const {
  std::vector<Showing> all;
  for (std::size_t c = 0; c < scores_.size(); ++c) {
    const std::vector<double>& sorted = scores_[c];
    if (!takes_part(field, player, c) || sorted.size() <= kLeastOthers) continue;
    const double score = player.cells[c].figure(by_).value;
    const auto own = std::ranges::lower_bound(sorted, score);
    const auto higher = sorted.end() - std::ranges::upper_bound(sorted, score);
    all.push_back({c, score, median_without(sorted, static_cast<std::size_t>(own - sorted.begin())),
                   static_cast<std::size_t>(higher) + 1, sorted.size()});
  }
  std::ranges::stable_sort(all, std::ranges::greater{}, &Showing::lead);
  return all;
}

}  // namespace assay::compare
