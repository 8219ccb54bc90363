#include "compare/traps.h"

#include <algorithm>
#include <set>

#include "compare/bootstrap.h"
#include "records/lookup.h"
#include "spec/spec.h"

namespace assay::compare {
namespace {

bool counts_for_traps(const BoardRow& row) {
  return was_built(row) && row.score.total && !is_quick(row.score) && row.failed;
}

// The cases that each counted submission of a model failed.
struct Fallen {
  const std::string* model;
  std::vector<std::set<std::string_view>> answers;
};

std::vector<Fallen> fallen_of(const Field& field, std::size_t challenge) {
  std::vector<Fallen> all;
  for (const Player& player : field.players) {
    Fallen fallen{&player.model, {}};
    for (const BoardRow* row : player.cells[challenge].graded) {
      if (!counts_for_traps(*row)) continue;
      auto& names = fallen.answers.emplace_back();
      for (const FailedCase& f : *row->failed) names.insert(f.name);
    }
    if (!fallen.answers.empty()) all.push_back(std::move(fallen));
  }
  return all;
}

// Mean absolute difference over all pairs, in one pass over sorted values.
double mean_difference(std::vector<double> shares) {
  const std::size_t n = shares.size();
  if (n < 2) return 0;
  std::ranges::sort(shares);
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i)
    sum += shares[i] * (2 * static_cast<double>(i) - static_cast<double>(n - 1));
  return sum / (static_cast<double>(n) * static_cast<double>(n - 1) / 2);
}

TrapFigure figure_of(const std::vector<Fallen>& all, const ChallengeSpec& spec, const CaseSpec& c) {
  TrapFigure figure;
  figure.challenge = &spec;
  figure.trap = c.name;
  figure.catches = c.catches;
  std::vector<double> shares;
  for (const Fallen& model : all) {
    std::size_t fell = 0;
    for (const auto& names : model.answers) fell += names.contains(c.name) ? 1 : 0;
    figure.answers += model.answers.size();
    figure.fallen += fell;
    shares.push_back(static_cast<double>(fell) / static_cast<double>(model.answers.size()));
    figure.share += shares.back();
    if (fell > 0 && figure.fell.size() < TrapFigure::kFallenNamed)
      figure.fell.push_back(*model.model);
  }
  figure.models = all.size();
  const auto models = static_cast<double>(figure.models);
  figure.interval = wilson(figure.share, models);
  figure.share /= models;
  figure.separation = mean_difference(std::move(shares));
  return figure;
}

}  // namespace

TrapFigure::Use TrapFigure::use() const {
  if (fallen == 0) return Use::nobody;
  return fallen == answers ? Use::everybody : Use::separates;
}

std::vector<TrapFigure> trap_figures(const Field& field) {
  std::vector<TrapFigure> figures;
  for (std::size_t i = 0; i < field.challenges.size(); ++i) {
    if (field.yardsticks[i].is_dated) continue;
    const auto all = fallen_of(field, i);
    if (all.empty()) continue;
    for (const CaseSpec& c : spec_for(field.device, *field.challenges[i]).cases) {
      if (c.group == CaseGroup::trap && !c.drawn)
        figures.push_back(figure_of(all, *field.challenges[i], c));
    }
  }
  std::ranges::stable_sort(figures, std::greater(), &TrapFigure::separation);
  return figures;
}

std::size_t uncounted_answers(const Field& field) {
  std::size_t count = 0;
  for (const Player& player : field.players) {
    for (std::size_t i = 0; i < player.cells.size(); ++i) {
      const Cell& cell = player.cells[i];
      count += cell.stale.size();
      for (const BoardRow* row : cell.graded)
        count += field.yardsticks[i].is_dated || !row->failed ? 1 : 0;
    }
  }
  return count;
}

}  // namespace assay::compare
