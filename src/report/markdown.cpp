#include "report/markdown.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <tuple>

#include "compare/effort.h"
#include "compare/fast_p.h"
#include "compare/pass_at_k.h"
#include "grade/grade.h"
#include "records/lookup.h"
#include "records/machine_kind.h"
#include "report/figures.h"
#include "report/markdown_text.h"

namespace assay::report {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr const char* kNone = "–";  // no submission
constexpr std::size_t kModelsOfASubset = 20;

constexpr const char* kSimulated =
    R"(Speeds are modelled as on {}, never measured. The floor, which nothing beats, is of the fewest
launches and least bytes or flops, at the data sheet's rates.)";

constexpr const char* kRealGpu = R"(Measured on {}. Results of other GPUs enter nothing.)";

constexpr const char* kRankNote =
    R"(Ranked by the {} at each challenge, averaged over all challenges that are graded whole on
the device; the best attempts' average stands beside it. A rank is one more than the number of models
that are clearly better: models whose 95 % intervals overlap tie (=). Who left challenges out has no
rank (–), and a stale result, measured by other rules than today's, counts as left out: averages over
different challenges do not compare. Head to head does, over what both attempted. With one attempt
each, intervals are of timings alone. (partial): a device cannot grade a main part of the challenge;
such scores enter no average.

)";

constexpr const char* kStrengthNote =
    R"(Strengths by Bradley and Terry from every challenge that two models both attempted: the chance to
beat an average model here, with its 95 % interval. A win is a difference beyond noise, everything
else a tie. Partial challenges and quick scores beside full ones are left out.

)";

constexpr const char* kMethod =
    R"(Every submission was built from source, run under that isolation on inputs it had not seen,
checked against fp64 references, and timed beside the challenge's own naive and par implementations.
Intervals come from a bootstrap of paired timings. 'not run' means that nothing was measured, and is
never a zero; – means that there is no submission; (quick) is the score of a part of the cases;
(stale) says that other rules than today's measured it, and which; (older spec) that the challenge's
spec has changed since, but that all results it is compared with are of the same older one.
)";

// What a reader must know before comparing a cell with others.
std::string remarks(const compare::Field& field, std::size_t column, const BoardRow& e) {
  std::string text;
  if (field.is_partial(column)) text += " (partial)";
  if (is_quick(e.score)) text += " (quick)";
  return text;
}

// Without the reasons, which are in the challenge's table.
std::string short_stale_mark(const compare::Field& field, std::size_t column, const BoardRow& e) {
  return is_stale(e, field.yardsticks[column]) ? " (stale)" : "";
}

// Remarks on an average: those that apply to any score in it.
std::string remarks(const Standings& all, const Standing& s) {
  for (std::size_t i = 0; i < s.player->cells.size(); ++i) {
    const compare::Cell& cell = s.player->cells[i];
    if (cell.count() > 0 && !all.field.is_partial(i) && is_quick(cell.best->score))
      return " (quick)";
  }
  return "";
}

std::string cell_text(const compare::Field& field, std::size_t column, const BoardRow* e) {
  if (e == nullptr) return kNone;
  if (!e->score.total) return kNotRun;
  if (e->score.verdict == Verdict::no_answer)
    return "no answer" + short_stale_mark(field, column, *e);
  return fmt::format("**{}** {}{}{}", e->score.letter, points(*e->score.total),
                     remarks(field, column, *e), short_stale_mark(field, column, *e));
}

// By the figure that the standings rank by, such as the mean of several attempts.
std::string cell_text(const Standings& all, const Standing& s, std::size_t i) {
  const compare::Cell& cell = s.player->cells[i];
  if (cell.count() < 2) return cell_text(all.field, i, cell.best);
  const double value = cell.figure(all.by).value;
  return fmt::format("**{}** {}{}", letter(value), points(value),
                     remarks(all.field, i, *cell.best));
}

// The first column left-aligned, the others centred.
std::string matrix_alignment(std::size_t columns) {
  std::string alignment(columns + 1, 'c');
  alignment[0] = 'l';
  return alignment;
}

std::string attempt_name(const BoardRow& e) {
  return e.key.attempt.empty() ? "1" : markdown_text(e.key.attempt);
}

// The first `most` of them.
template <typename T>
std::span<const T> first(const std::vector<T>& all, std::size_t most) {
  return std::span(all).first(std::min(most, all.size()));
}

// A paragraph on what a table leaves out; empty if it shows everything.
std::string rows_left_out(const char* which, std::size_t most, std::size_t all, const char* where) {
  if (all <= most) return "";
  return fmt::format("Only the {} {} of {} are shown{}.\n\n", which, most, all, where);
}

// --- overall -----------------------------------------------------------------

std::string rank_text(int rank, bool tied, bool reference) {
  if (reference) return "ref";
  return rank == 0 ? std::string(kNone) : fmt::format("{}{}", rank, tied ? "=" : "");
}

// "73 % (51 to 88)"
std::string chance_text(const compare::Strength& s) {
  const auto percent = [](double value) { return 100 / (1 + std::exp(-value)); };
  return fmt::format("{:.0f} % ({:.0f} to {:.0f})", percent(s.value), percent(s.interval.low),
                     percent(s.interval.high));
}

std::vector<std::string> overall_row(const Standings& all, const Standing& s) {
  const auto value = [](std::optional<double> v) { return v ? points(*v) : std::string(kNone); };
  const std::string more = (s.partial > 0 ? fmt::format(" + {} partial", s.partial) : "") +
                           (s.stale > 0 ? fmt::format(" + {} stale", s.stale) : "");
  return {rank_text(s.rank, s.tied, s.reference),
          markdown_text(s.model),
          s.average     ? with_interval(*s.average, s.interval) + remarks(all, s)
          : s.stale > 0 ? "stale"
                        : kNotRun,
          value(s.best),
          s.average ? letter(*s.average) : kNone,
          fmt::format("{} of {}{}", s.attempted, all.whole, more),
          s.strength ? chance_text(*s.strength) : kNone};
}

std::vector<const Standing*> by_strength(const Standings& all) {
  std::vector<const Standing*> met;
  for (const Standing& s : all.models) {
    if (s.strength) met.push_back(&s);
  }
  std::ranges::stable_sort(met, {}, [](const Standing* s) {
    return std::tuple(s->reference, s->strength->rank, -s->strength->value);
  });
  return met;
}

// --- figures -----------------------------------------------------------------

std::string share_text(double value, Interval i) {
  return fmt::format("{:.0f} % ({:.0f} to {:.0f})", 100 * value, 100 * i.low, 100 * i.high);
}

// For the largest number of attempts at any challenge, if that is two or more; else "".
std::string pass_at_most(const compare::Player& player, const compare::Goal& goal) {
  std::size_t k = 0;
  for (const compare::Cell& cell : player.cells) k = std::max(k, cell.count());
  if (k < 2) return "";
  const auto rate = compare::pass_rate(player, goal, k);
  const std::string share = rate->interval ? share_text(rate->value, *rate->interval)
                                           : fmt::format("{:.0f} %", 100 * rate->value);
  return fmt::format("@{}: {}, {} of {} challenges", k, share, rate->challenges,
                     rate->challenges + rate->left_out);
}

std::string fast_text(const Standings& all, const Standing& s, compare::Reference reference) {
  const auto rate = compare::fast_p(*s.player, all.field.device, reference, 1);
  return rate ? share_text(rate->value, rate->interval) : kNone;
}

std::string speed_text(const Standing& s, compare::Reference reference) {
  const auto speed = compare::mean_speed(*s.player, reference);
  if (!speed) return kNone;
  const Interval i = speed->speed.interval;
  const std::string value = fmt::format("{:.3g}x", speed->speed.value);
  const std::string interval =
      i.low == i.high ? "" : fmt::format(" ({:.3g} to {:.3g})", i.low, i.high);
  return fmt::format("{}{}, {} {}", value, interval, speed->answers,
                     speed->answers == 1 ? "answer" : "answers");
}

// --- per challenge -----------------------------------------------------------

// Stale rows come after the others.
std::vector<const BoardRow*> by_score(const Standings& all, std::size_t column) {
  std::vector<const compare::Cell*> cells;
  for (const Standing& s : all.models) {
    const compare::Cell& cell = s.player->cells[column];
    if (cell.best != nullptr) cells.push_back(&cell);
  }
  std::ranges::stable_sort(cells, {}, [](const compare::Cell* cell) {
    return std::tuple(cell->is_stale(), -cell->best->score.total.value_or(-1));
  });
  std::vector<const BoardRow*> entries;
  for (const compare::Cell* cell : cells) entries.push_back(cell->best);
  return entries;
}

std::string speed_title(const std::vector<const BoardRow*>& entries) {
  for (const BoardRow* e : entries) {
    if (!e->score.modelled_on.empty())
      return fmt::format("Speed modelled on {}, floor = 1", markdown_text(e->score.modelled_on));
  }
  return "Speed, par = 1 (95 %)";
}

std::vector<std::string> challenge_row(const compare::Field& field, std::size_t column,
                                       const BoardRow& e) {
  const Score& s = e.score;
  return {markdown_text(e.key.model),
          (s.total ? s.letter + " " : "") + total(s) + remarks(field, column, e) +
              field.currency_mark(column, e),
          dimension_points(s, "correctness"),
          speed_against_par(s),
          short_verdict(s.verdict),
          markdown_text(e.reason)};
}

// --- how it was measured -----------------------------------------------------

std::string machine_text(const Machine& m) {
  constexpr double kGibi = 1 << 30;
  std::string text = fmt::format("{}, {} cores, {:.0f} GiB; {}; {}", m.cpu, m.cores,
                                 static_cast<double>(m.memory_bytes) / kGibi, m.os, m.compiler);
  if (m.gpu) text += fmt::format("; {}, CUDA {}", m.gpu->name, m.gpu->driver);
  return text;
}

std::string assay_text(const BoardRow& e) {
  return e.assay_commit.empty()
             ? e.assay_version
             : fmt::format("{} ({})", e.assay_version, e.assay_commit.substr(0, 12));
}

// Models with answers in C++, grouped by a property of their rows.
using Groups = std::map<std::string, std::set<std::string>>;

template <typename What>
Groups models_by(const Scoreboard& board, What what) {
  Groups models;
  for (const auto& [key, row] : board.entries) {
    if (key.device == Device::cpu) models[what(row)].insert(key.model);
  }
  return models;
}

// "native (a, b); x86-64-v3 (c)"
std::string named(const Groups& groups) {
  std::vector<std::string> parts;
  for (const auto& [what, names] : groups) {
    constexpr std::size_t kNamed = 6;
    std::string text = markdown_text(what) + " (";
    std::size_t n = 0;
    for (const std::string& name : names) {
      if (n == kNamed) text += fmt::format(" and {} more", names.size() - kNamed);
      if (n++ >= kNamed) break;
      text += (n > 1 ? ", " : "") + markdown_text(name);
    }
    parts.push_back(text + ")");
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

// Machine, target, assay, seed and isolation, which results may share.
using Setting = std::tuple<std::string, std::string, std::string, std::string, std::string>;

struct Use {
  Setting setting;
  std::string newest;
  int cells = 0;
};

// Newest first.
std::vector<Use> settings_of(const Scoreboard& board) {
  std::map<Setting, Use> uses;
  for (const auto& [key, e] : board.entries) {
    const Setting setting{machine_text(e.machine), e.target, assay_text(e), std::to_string(e.seed),
                          e.isolation};
    Use& use = uses[setting];
    use.setting = setting;
    use.newest = std::max(use.newest, e.finished_at);
    ++use.cells;
  }
  std::vector<Use> sorted;
  for (auto& [setting, use] : uses) sorted.push_back(std::move(use));
  std::ranges::stable_sort(sorted, std::ranges::greater(), &Use::newest);
  return sorted;
}

}  // namespace

const char* device_title(Device device) {
  switch (device) {
    case Device::cpu: return "C++ on the CPU";
    case Device::sim: return "CUDA on the simulated GPU";
    case Device::cuda: return "CUDA on a real GPU";
  }
  return "";
}

std::string overall_table(const Standings& all, std::size_t most) {
  Rows rows;
  for (const Standing& s : first(all.models, most)) rows.push_back(overall_row(all, s));
  return markdown_table({"Rank", "Model", "Average (95 %)", "Best attempts", "Grade", "Challenges",
                         "Head to head"},
                        "rlrrccr", rows) +
         rows_left_out("best", most, all.models.size(), "");
}

std::string device_note(const Standings& all) {
  if (all.field.device == Device::cpu) return "";
  const char* const note = all.field.device == Device::sim ? kSimulated : kRealGpu;
  return fmt::format(fmt::runtime(note), markdown_text(all.field.gpu)) + "\n\n";
}

std::string rank_note(compare::By by) { return fmt::format(kRankNote, title(by)); }

std::string strength_note() { return kStrengthNote; }

std::string strength_table(const Standings& all, std::size_t most) {
  const auto met = by_strength(all);
  if (met.size() < 2) return "";
  const bool groups =
      std::ranges::any_of(met, [](const Standing* s) { return s->strength->group != 0; });
  std::vector<std::string> header{"Rank", "Model", "Beats an average model",
                                  "Wins", "Ties",  "Losses"};
  if (groups) header.emplace_back("Group");
  Rows rows;
  for (const Standing* s : first(met, most)) {
    rows.push_back({rank_text(s->strength->rank, s->strength->tied, s->reference),
                    markdown_text(s->model), chance_text(*s->strength),
                    std::to_string(s->record.wins), std::to_string(s->record.ties),
                    std::to_string(s->record.losses)});
    if (groups) rows.back().push_back(std::to_string(s->strength->group + 1));
  }
  const auto measured = static_cast<std::size_t>(
      std::ranges::count_if(all.models, [](const Standing& s) { return s.average.has_value(); }));
  std::string text = markdown_table(header, groups ? "rlrrrrr" : "rlrrrr", rows) +
                     rows_left_out("strongest", most, met.size(), "");
  if (all.met < measured) {
    text +=
        fmt::format("Of {} models the {} with most challenges and the highest averages met.\n\n",
                    measured, all.met);
  }
  if (groups) {
    text +=
        "Models of different groups met neither each other nor a common third: their strengths "
        "compare\nonly by assumption.\n\n";
  }
  return text;
}

std::string subset_tables(const Standings& all, std::size_t most) {
  std::string text;
  for (const SubsetRanking& ranking : subset_rankings(all, most)) {
    std::string titles;
    for (const std::size_t c : ranking.challenges)
      titles += (titles.empty() ? "" : ", ") + markdown_text(all.field.challenges[c]->title);
    text += fmt::format("Over {} alone ({} of {} challenges):\n\n", titles,
                        ranking.challenges.size(), all.whole);
    Rows rows;
    for (const SubsetRanking::Place& p : ranking.places) {
      rows.push_back(
          {rank_text(p.rank, p.tied, p.standing->reference), markdown_text(p.standing->model),
           with_interval(p.average, p.interval) + remarks(all, *p.standing), letter(p.average)});
      if (rows.size() == kModelsOfASubset) break;
    }
    text += markdown_table({"Rank", "Model", "Average (95 %)", "Grade"}, "rlrc", rows) +
            rows_left_out("best", kModelsOfASubset, ranking.places.size(), "");
  }
  return text;
}

std::string figures_table(const Standings& all, std::size_t most) {
  using compare::Reference;
  // A reference speed that is known for no model gets no column.
  const auto is_known = [&](Reference reference) {
    return std::ranges::any_of(first(all.models, most), [&](const Standing& s) {
      return compare::mean_speed(*s.player, reference).has_value();
    });
  };
  const bool has_par = is_known(Reference::par), has_floor = is_known(Reference::floor);
  const compare::Goal correct = compare::goal_from("correct");
  std::vector<std::string> header{"Model",
                                  "Solved",
                                  "pass@1",
                                  "pass@k",
                                  "Faster than naive",
                                  "Faster than par",
                                  "Speed-up on naive",
                                  "Speed-up on par",
                                  "Share of the floor",
                                  "Tokens per solved",
                                  "Cost per solved"};
  std::string alignment = "lcrlrrrrrrr";
  Rows rows;
  for (const Standing& s : first(all.models, most)) {
    const auto once = compare::pass_rate(*s.player, correct, 1);
    if (!once) continue;
    const compare::Effort effort = compare::effort_of(*s.player, correct);
    const auto tokens = effort.per_solved(effort.tokens), cost = effort.per_solved(effort.cost_usd);
    rows.push_back({markdown_text(s.model),
                    fmt::format("{} of {}", compare::solved_challenges(*s.player, correct),
                                compare::attempted_challenges(*s.player)),
                    share_text(once->value, *once->interval), pass_at_most(*s.player, correct),
                    fast_text(all, s, Reference::naive),
                    all.field.device == Device::sim ? "" : fast_text(all, s, Reference::par),
                    speed_text(s, Reference::naive), has_par ? speed_text(s, Reference::par) : "",
                    has_floor ? speed_text(s, Reference::floor) : "",
                    tokens ? fmt::format("{:.0f}", *tokens) : "", cost ? dollars(*cost) : ""});
  }
  if (rows.empty()) return "";
  drop_empty_columns(header, alignment, rows);
  return markdown_table(header, alignment, rows) +
         rows_left_out("best", most, all.models.size(), "");
}

std::string grade_matrix(const Standings& all) {
  std::vector<std::string> header{"Model"};
  for (const ChallengeSpec* spec : all.field.challenges)
    header.push_back(markdown_text(spec->title));
  Rows rows;
  for (const Standing& s : all.models) {
    rows.push_back({markdown_text(s.model)});
    for (std::size_t i = 0; i < s.player->cells.size(); ++i)
      rows.back().push_back(cell_text(all, s, i));
  }
  return markdown_table(header, matrix_alignment(all.field.challenges.size()), rows);
}

std::string attempts_table(const Standings& all) {
  Rows rows;
  for (const Standing& s : all.models) {
    for (std::size_t i = 0; i < s.player->cells.size(); ++i) {
      const compare::Cell& cell = s.player->cells[i];
      if (cell.attempts.size() < 2) continue;
      std::string list;
      for (const BoardRow* e : cell.attempts) {
        list += fmt::format("{}{}: {}", list.empty() ? "" : ", ", attempt_name(*e),
                            cell_text(all.field, i, e));
      }
      const auto value = [&](compare::By by) {
        return cell.count() > 0 ? points(cell.figure(by).value) : std::string(kNotRun);
      };
      rows.push_back({markdown_text(s.model), markdown_text(all.field.challenges[i]->title),
                      cell.count() > 0 ? with_interval(cell.mean.value, cell.mean.interval)
                                       : std::string(kNotRun),
                      value(compare::By::best), value(compare::By::first), points(cell.spread()),
                      list});
    }
  }
  if (rows.empty()) return "";
  return fmt::format("Where a model made several attempts, their {} is shown above:\n\n",
                     all.by == compare::By::mean ? "mean" : to_string(all.by)) +
         markdown_table(
             {"Model", "Challenge", "Mean (95 %)", "Best", "First", "Deviation", "Attempts"},
             "llrrrrl", rows);
}

std::string head_to_head_table(const Standings& all, std::size_t most) {
  std::vector<const Standing*> models;
  for (const Standing& s : all.models) {
    if (s.average) models.push_back(&s);
  }
  const auto shown = first(models, most);
  if (shown.size() < 2) return "";
  std::vector<std::string> header{"Wins-ties-losses of \\ against"};
  for (const Standing* s : shown) header.push_back(markdown_text(s->model));
  const compare::Goal correct = compare::goal_from("correct");
  Rows rows;
  for (const Standing* a : shown) {
    rows.push_back({markdown_text(a->model)});
    for (const Standing* b : shown) {
      if (a == b) {
        rows.back().emplace_back(kNone);
        continue;
      }
      const compare::Record r =
          compare::compare_pair(all.field, *a->player, *b->player, all.by, correct).record;
      rows.back().push_back(r.games() > 0 ? fmt::format("{}-{}-{}", r.wins, r.ties, r.losses)
                                          : kNone);
    }
  }
  return "Over the whole challenges that both attempted; a difference within noise is a tie.\n\n" +
         rows_left_out("best", most, models.size(), "") +
         markdown_table(header, matrix_alignment(shown.size()), rows);
}

std::string challenge_table(const Standings& all, std::size_t column, std::size_t most) {
  const auto entries = by_score(all, column);
  if (entries.empty()) return "Not attempted yet.\n\n";
  Rows rows;
  for (const BoardRow* e : first(entries, most)) {
    rows.push_back(challenge_row(all.field, column, *e));
  }
  std::string missing;
  for (const std::string& m : all.field.gaps[column].missing)
    missing += (missing.empty() ? "" : ", ") + markdown_text(m);
  return markdown_table({"Model", "Score (95 %)", "Correctness", speed_title(entries), "Verdict",
                         "Main reason"},
                        "lrrrcl", rows) +
         (all.field.is_partial(column)
              ? fmt::format("Partial: not graded on this device: {}.\n\n", missing)
              : "") +
         rows_left_out("best", most, entries.size(),
                       "; `assay show MODEL CHALLENGE` knows the others");
}

std::string side_by_side_table(const std::map<Device, Standings>& devices) {
  if (devices.size() < 2) return "";
  const auto& challenges = devices.begin()->second.field.challenges;
  std::vector<std::string> header{"Model", "Device"};
  for (const ChallengeSpec* spec : challenges) header.push_back(markdown_text(spec->title));
  std::map<std::string, Rows> models;
  for (const auto& [device, all] : devices) {
    for (const Standing& s : all.models) {
      std::vector<std::string> row{markdown_text(s.model), device_title(device)};
      for (std::size_t i = 0; i < s.player->cells.size(); ++i) row.push_back(cell_text(all, s, i));
      models[s.model].push_back(std::move(row));
    }
  }
  Rows rows;
  for (const auto& [model, lines] : models) {
    if (lines.size() > 1) rows.insert(rows.end(), lines.begin(), lines.end());
  }
  if (rows.empty()) return "";
  return markdown_table(header, "l" + matrix_alignment(challenges.size()), rows);
}

std::string targets_note(const Scoreboard& board) {
  const Groups models = models_by(board, [](const BoardRow& row) { return row.target; });
  if (models.size() < 2) return "";
  return fmt::format(
      "Answers in C++ were compiled for different targets: {}. A speed is relative to that of par "
      "for the same target; ranks across targets say less than ranks within one.\n\n",
      named(models));
}

std::string machines_note(const Scoreboard& board) {
  const Groups models = models_by(board, [](const BoardRow& row) { return kind_of(row.machine); });
  if (models.size() < 2) return "";
  return fmt::format(
      "Answers in C++ were timed on machines of different kinds: {}. Par was timed on each, and a "
      "speed is relative to that of par on the same machine; ranks across kinds say less than "
      "ranks within one.\n\n",
      named(models));
}

std::string how_measured(const Scoreboard& board, std::size_t most) {
  const auto uses = settings_of(board);
  Rows rows;
  for (const Use& use : first(uses, most)) {
    const auto& [machine, target, version, seed, isolation] = use.setting;
    rows.push_back({markdown_text(use.newest), std::to_string(use.cells), markdown_text(machine),
                    markdown_text(target), markdown_text(version), seed, markdown_text(isolation)});
  }
  return markdown_table(
             {"Newest result", "Results", "Machine", "Target", "assay", "Seed", "Isolation"},
             "lrlllrl", rows) +
         rows_left_out("newest", most, uses.size(), "") + kMethod;
}

}  // namespace assay::report
