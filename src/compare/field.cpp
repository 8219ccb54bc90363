#include "compare/field.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "compare/bootstrap.h"
#include "grade/grade.h"
#include "records/lookup.h"

namespace assay::compare {
namespace {

constexpr std::pair<By, std::pair<const char*, const char*>> kFigures[] = {
    {By::mean, {"mean", "mean of attempts"}},
    {By::best, {"best", "best attempt"}},
    {By::first, {"first", "first attempt"}}};

// Boards may come from elsewhere and contain any number.
bool is_graded(const BoardRow& row) { return row.score.total && std::isfinite(*row.score.total); }

// A score that never ran is the same in quick and full runs, and counts among either.
bool counts_among(const BoardRow& row, bool any_full) {
  return is_graded(row) && (!any_full || !is_quick(row.score));
}

const BoardRow* highest_of(const std::vector<const BoardRow*>& rows) {
  const auto highest =
      std::ranges::max_element(rows, {}, [](const BoardRow* row) { return score_of(*row).value; });
  return highest == rows.end() ? nullptr : *highest;
}

void settle(Cell& cell, const Yardstick& yardstick) {
  std::ranges::stable_sort(cell.attempts, [](const BoardRow* a, const BoardRow* b) {
    return attempt_before(a->key.attempt, b->key.attempt);
  });
  std::vector<const BoardRow*> comparable;
  for (const BoardRow* row : cell.attempts)
    (assay::is_stale(*row, yardstick) ? cell.stale : comparable).push_back(row);
  const bool any_full = std::ranges::any_of(comparable, [](const BoardRow* row) {
    return row->score.total && !is_quick(row->score) && !never_ran(row->score);
  });
  for (const BoardRow* row : comparable) {
    if (counts_among(*row, any_full)) cell.graded.push_back(row);
  }
  std::vector<Estimate> scores;
  for (const BoardRow* row : cell.graded) scores.push_back(score_of(*row));
  if (!scores.empty()) {
    cell.mean = mean_over_cells({scores});
    cell.mean.interval = clamp(cell.mean.interval, 0, 100);
  }
  std::vector<const BoardRow*> stale;
  std::ranges::copy_if(cell.stale, std::back_inserter(stale),
                       [](const BoardRow* row) { return is_graded(*row); });
  cell.best = highest_of(cell.graded);
  if (cell.best == nullptr) cell.best = highest_of(stale);
  if (cell.best == nullptr && !cell.attempts.empty()) cell.best = cell.attempts.front();
}

}  // namespace

const char* to_string(By by) {
  for (const auto& [figure, names] : kFigures) {
    if (figure == by) return names.first;
  }
  return "?";
}

const char* title(By by) {
  for (const auto& [figure, names] : kFigures) {
    if (figure == by) return names.second;
  }
  return "?";
}

std::optional<By> by_from(const std::string& name) {
  for (const auto& [figure, names] : kFigures) {
    if (name == names.first) return figure;
  }
  return {};
}

Estimate Cell::figure(By by) const {
  if (by == By::best) return score_of(*best);
  if (by == By::first) return score_of(*graded.front());
  return mean;
}

double Cell::worst() const {
  double least = score_of(*graded.front()).value;
  for (const BoardRow* row : graded) least = std::min(least, score_of(*row).value);
  return least;
}

double Cell::spread() const {
  if (graded.size() < 2) return 0;
  double squares = 0;
  for (const BoardRow* row : graded) {
    const double deviation = score_of(*row).value - mean.value;
    squares += deviation * deviation;
  }
  return std::sqrt(squares / static_cast<double>(graded.size() - 1));
}

bool Cell::is_stale() const {
  return graded.empty() && std::ranges::find(stale, best) != stale.end();
}

std::string Field::currency_mark(std::size_t challenge, const BoardRow& row) const {
  return assay::currency_mark(row, yardsticks[challenge]);
}

const Player* Field::find(const std::string& model) const {
  const auto found = std::ranges::find(players, model, &Player::model);
  return found == players.end() ? nullptr : &*found;
}

Field make_field(const Scoreboard& board, const std::vector<ChallengeSpec>& specs, Device device) {
  Field field;
  field.device = device;
  field.gpu = gpu_of(board, device);
  const Yardsticks yardsticks(board, specs);
  std::map<std::string, std::size_t> columns;
  for (const ChallengeSpec& spec : specs) {
    columns[spec.name] = field.challenges.size();
    field.challenges.push_back(&spec);
    field.gaps.push_back(device_gap(spec, device));
    field.yardsticks.push_back(yardsticks.of(device, spec.name));
  }
  // The board is sorted by model.
  for (const auto& [key, row] : board.entries) {
    const auto column = columns.find(key.challenge);
    if (key.device != device || column == columns.end()) continue;
    if (field.players.empty() || field.players.back().model != key.model)
      field.players.push_back({key.model, std::vector<Cell>(specs.size())});
    field.players.back().cells[column->second].attempts.push_back(&row);
  }
  for (Player& player : field.players) {
    for (std::size_t c = 0; c < specs.size(); ++c) settle(player.cells[c], field.yardsticks[c]);
  }
  return field;
}

std::vector<Device> devices_of(const Scoreboard& board) {
  std::set<Device> used;
  for (const auto& [key, row] : board.entries) used.insert(key.device);
  return {used.begin(), used.end()};
}

bool attempt_before(const std::string& a, const std::string& b) {
  // The only one of its kind, then numbers, then other names.
  const auto kind = [](const std::string& s) {
    const bool number = std::ranges::all_of(s, [](char c) { return c >= '0' && c <= '9'; });
    return s.empty() ? 0 : number ? 1 : 2;
  };
  if (kind(a) != kind(b)) return kind(a) < kind(b);
  if (kind(a) == 1 && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

Estimate score_of(const BoardRow& row) {
  constexpr double kMost = 100;
  const double value = std::clamp(*row.score.total, 0.0, kMost);
  const Interval i = row.score.interval;
  // Interval ends that are NaN or on the wrong side are ignored.
  return {value,
          {i.low >= 0 && i.low <= value ? i.low : value,
           i.high >= value && i.high <= kMost ? i.high : value}};
}

bool takes_part(const Field& field, const Player& player, std::size_t c) {
  const Cell& cell = player.cells[c];
  return cell.count() > 0 && !field.is_partial(c) && !is_quick(cell.best->score);
}

std::string why_not_compared(const BoardRow& a, const BoardRow& b, bool across_specs) {
  const bool like_any = never_ran(a.score) || never_ran(b.score);
  if (!like_any && is_quick(a.score) != is_quick(b.score)) return "a quick score beside a full one";
  return why_apart(a, b, across_specs);
}

bool is_correct(const BoardRow& row) { return row.score.verdict == Verdict::ok; }

bool was_built(const BoardRow& row) {
  const Verdict v = row.score.verdict;
  return v != Verdict::no_answer && v != Verdict::build_error && v != Verdict::build_limit &&
         v != Verdict::load_error && was_run(v);
}

}  // namespace assay::compare
