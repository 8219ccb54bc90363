#include "compare/effort.h"

#include <algorithm>

namespace assay::compare {
namespace {

void add_if_known(std::optional<double>& sum, const std::optional<double>& value) {
  if (!sum) return;
  if (value) {
    *sum += *value;
  } else {
    sum.reset();
  }
}

std::optional<double> tokens_of(const AttemptRecord& a) {
  if (!a.tokens_in || !a.tokens_out) return {};
  return static_cast<double>(*a.tokens_in) + static_cast<double>(*a.tokens_out);
}

}  // namespace

std::optional<double> Effort::per_solved(const std::optional<double>& sum) const {
  if (!sum || solved == 0) return {};
  return *sum / static_cast<double>(solved);
}

Effort effort_of(const Player& player, const Goal& goal) {
  Effort effort;
  effort.solved = solved_challenges(player, goal);
  effort.tokens = effort.cost_usd = effort.seconds = 0;
  for (const Cell& cell : player.cells) {
    for (const BoardRow* row : cell.attempts) {
      if (std::ranges::find(cell.stale, row) != cell.stale.end()) continue;
      ++effort.attempts;
      add_if_known(effort.tokens, tokens_of(row->attempt));
      add_if_known(effort.cost_usd, row->attempt.cost_usd);
      add_if_known(effort.seconds, row->attempt.seconds);
    }
  }
  if (effort.attempts == 0) effort.tokens = effort.cost_usd = effort.seconds = std::nullopt;
  return effort;
}

}  // namespace assay::compare
