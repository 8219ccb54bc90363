#include "report/standings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "grade/grade.h"
#include "report/figures.h"

namespace assay::report {
namespace {

bool has_total(const BoardRow* e) { return e != nullptr && e->score.total.has_value(); }

// A full measurement counts before a quick one, and that before none.
std::tuple<bool, bool, double> standing_key(const BoardRow& e) {
  return {e.score.total.has_value(), !is_quick(e.score), e.score.total.value_or(0)};
}

const BoardRow* best_of(const std::vector<const BoardRow*>& attempts) {
  const BoardRow* best = nullptr;
  for (const BoardRow* e : attempts) {
    if (best == nullptr || standing_key(*e) > standing_key(*best)) best = e;
  }
  return best;
}

void average(Standing& s) {
  double sum = 0, low = 0, high = 0, first = 0, mean = 0;
  for (const BoardRow* e : s.best) {
    if (!has_total(e)) continue;
    ++s.attempted;
    sum += *e->score.total;
    low += e->score.interval.low;
    high += e->score.interval.high;
  }
  if (s.attempted == 0) return;
  for (const auto& attempts : s.attempts) {
    const Attempts a = attempts_of(attempts);
    first += a.first;
    mean += a.mean;
  }
  s.average = sum / s.attempted;
  s.first = first / s.attempted;
  s.mean = mean / s.attempted;
  s.interval = {low / s.attempted, high / s.attempted};
}

void rank(std::vector<Standing>& models) {
  std::map<int, int> holders;
  for (Standing& s : models) {
    if (!s.average) continue;
    s.rank = 1;
    for (const Standing& other : models) {
      if (other.average && clearly_above(other.interval, s.interval)) ++s.rank;
    }
    ++holders[s.rank];
  }
  for (Standing& s : models) s.tied = s.average && holders[s.rank] > 1;
  std::sort(models.begin(), models.end(), [](const Standing& a, const Standing& b) {
    const auto key = [](const Standing& s) {
      return std::tuple(s.rank == 0, s.rank, -s.average.value_or(0), s.model);
    };
    return key(a) < key(b);
  });
  int most = 0;  // attempted, of those below
  for (auto s = models.rbegin(); s != models.rend(); ++s) {
    s->over_fewer = s->average && s->attempted < most;
    most = std::max(most, s->attempted);
  }
}

}  // namespace

Attempts attempts_of(const std::vector<const BoardRow*>& attempts) {
  const BoardRow* best = best_of(attempts);
  Attempts result;
  if (!has_total(best)) return result;
  for (const BoardRow* e : attempts) {
    if (!has_total(e) || is_quick(e->score) != is_quick(best->score)) continue;
    const double total = *e->score.total;
    if (result.count++ == 0) result.first = total;
    result.mean += total;
  }
  result.best = *best->score.total;
  result.mean /= static_cast<double>(result.count);
  return result;
}

std::vector<const ChallengeSpec*> left_out(const Standings& all, const Standing& s) {
  std::vector<const ChallengeSpec*> missing;
  for (std::size_t i = 0; i < s.best.size(); ++i) {
    if (!has_total(s.best[i])) missing.push_back(all.challenges[i]);
  }
  return missing;
}

bool clearly_above(Interval a, Interval b) {
  constexpr double kHalfTenth = 0.05;
  return a.low > b.high + kHalfTenth;
}

bool attempt_before(const std::string& a, const std::string& b) {
  const auto is_number = [](const std::string& s) {
    return !s.empty() &&
           std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  if (is_number(a) && is_number(b) && a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

std::vector<Device> devices(const Scoreboard& board) {
  std::set<Device> used;
  for (const auto& [key, entry] : board.entries) used.insert(key.device);
  return {used.begin(), used.end()};
}

Standings make_standings(const Scoreboard& board, const std::vector<ChallengeSpec>& specs,
                         Device device) {
  Standings result;
  std::map<std::string, std::size_t> columns;
  for (const ChallengeSpec& spec : specs) {
    columns[spec.name] = result.challenges.size();
    result.challenges.push_back(&spec);
  }
  std::map<std::string, Standing> models;
  for (const auto& [key, entry] : board.entries) {
    const auto column = columns.find(key.challenge);
    if (key.device != device || column == columns.end()) continue;
    Standing& s = models[key.model];
    s.model = key.model;
    s.attempts.resize(specs.size());
    s.attempts[column->second].push_back(&entry);
  }
  for (auto& [name, s] : models) {
    for (auto& attempts : s.attempts) {
      std::sort(attempts.begin(), attempts.end(), [](const BoardRow* a, const BoardRow* b) {
        return attempt_before(a->key.attempt, b->key.attempt);
      });
      s.best.push_back(best_of(attempts));
    }
    average(s);
    result.models.push_back(std::move(s));
  }
  rank(result.models);
  return result;
}

std::string place_among_others(const Standings& all, const std::string& model,
                               const std::string& challenge) {
  const auto s = std::ranges::find(all.models, model, &Standing::model);
  const auto column = std::ranges::find(all.challenges, challenge, &ChallengeSpec::name);
  if (s == all.models.end() || column == all.challenges.end()) return "";
  std::string text;
  const auto i = static_cast<std::size_t>(column - all.challenges.begin());
  if (const Attempts a = attempts_of(s->attempts[i]); a.count > 1) {
    text += fmt::format("attempts: {}, best {}, first {}, mean {}\n", a.count, points(a.best),
                        points(a.first), points(a.mean));
  }
  const auto missing = left_out(all, *s);
  if (missing.empty()) return text;
  std::string titles;
  for (const ChallengeSpec* spec : missing) titles += (titles.empty() ? "" : ", ") + spec->title;
  return text + fmt::format("its average is over {} of {} challenges, without {}{}\n", s->attempted,
                            all.challenges.size(), titles,
                            s->over_fewer ? "; models below it attempted more" : "");
}

Record head_to_head(const Standing& a, const Standing& b) {
  Record record;
  for (std::size_t i = 0; i < a.best.size(); ++i) {
    if (!has_total(a.best[i]) || !has_total(b.best[i])) continue;
    const Interval x = a.best[i]->score.interval, y = b.best[i]->score.interval;
    ++(clearly_above(x, y) ? record.wins : clearly_above(y, x) ? record.losses : record.ties);
  }
  return record;
}

}  // namespace assay::report
