#include "site/site_view.h"

#include <algorithm>

#include "assay/error.h"
#include "grade/currency.h"

namespace assay::site {

std::size_t DeviceView::place(std::size_t figure, const std::string& model) const {
  const auto& models = by[figure].models;
  const auto at = std::ranges::find(models, model, &report::Standing::model);
  if (at == models.end()) throw Error("no answer of that model on this device");
  return static_cast<std::size_t>(at - models.begin());
}

const ModelInfo& SiteView::about(const std::string& model) const {
  static const ModelInfo kNothing;
  const auto at = board->models.find(model);
  return at == board->models.end() ? kNothing : at->second;
}

const CellFacts& SiteView::facts_of(const BoardRow& row) const {
  static const CellFacts kNone;
  const auto at = facts.find(row.key);
  return at == facts.end() ? kNone : at->second;
}

namespace {

void add_pairs(const report::Standings& standings, std::vector<ModelPair>& pairs) {
  for (const auto& [a, b] : report::pairs_that_matter(standings)) {
    const ModelPair pair{a->model, b->model}, turned{b->model, a->model};
    const bool known = std::ranges::any_of(
        pairs, [&](const ModelPair& other) { return other == pair || other == turned; });
    if (!known) pairs.push_back(pair);
  }
}

}  // namespace

SiteView make_site_view(const Scoreboard& board, const std::vector<ChallengeSpec>& specs) {
  SiteView view{&board, {}, {}, {}, stale_text(count_stale(board, specs))};
  for (const Device device : compare::devices_of(board)) {
    DeviceView d{device, {}, {}};
    for (const compare::By by : kFigures)
      d.by.push_back(report::make_standings(board, specs, device, by));
    if (d.shown().models.empty()) continue;
    d.showings = compare::Showings(d.shown().field, d.shown().by);
    add_pairs(d.shown(), view.pairs);
    view.devices.push_back(std::move(d));
  }
  return view;
}

}  // namespace assay::site
