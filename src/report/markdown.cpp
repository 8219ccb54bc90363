#include "report/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "grade/grade.h"
#include "report/figures.h"
#include "report/markdown_text.h"

namespace assay::report {
namespace {

using Rows = std::vector<std::vector<std::string>>;

constexpr const char* kNone = "–";  // no submission

constexpr const char* kRankNote =
    R"(A model's rank is one more than the number of models that are clearly better: models whose
intervals overlap tie (=). Averages are over attempted challenges only, each with its best attempt;
the table says which are left out. Compare models that attempted different ones head to head.

)";

constexpr const char* kFewerNote =
    R"(† An average over fewer challenges than that of a model below: what was left out might have been
its worst, so this place is not earned against that model.

)";

constexpr const char* kMethod =
    R"(Every submission was built from source, run under that isolation on inputs it had not seen,
checked against fp64 references, and timed beside the challenge's own naive and par implementations.
Intervals come from a bootstrap of paired timings. 'not run' means that nothing was measured, and is
never a zero; – means that there is no submission; (quick) is the score of a part of the cases.
)";

// What a reader must know before comparing a cell with others.
std::string remarks(const BoardRow& e, const ChallengeSpec& spec) {
  std::string text;
  if (is_quick(e.score)) text += " (quick)";
  if (e.spec_hash != spec.hash) text += " (older spec)";
  return text;
}

// Of an average: what is true of any score in it.
std::string remarks(const Standings& all, const Standing& s) {
  bool quick = false, older = false;
  for (std::size_t i = 0; i < s.best.size(); ++i) {
    const BoardRow* e = s.best[i];
    if (e == nullptr || !e->score.total) continue;
    quick = quick || is_quick(e->score);
    older = older || e->spec_hash != all.challenges[i]->hash;
  }
  return std::string(quick ? " (quick)" : "") + (older ? " (older spec)" : "");
}

std::string cell_text(const BoardRow* e, const ChallengeSpec& spec) {
  if (e == nullptr) return kNone;
  if (!e->score.total) return kNotRun;
  return fmt::format("**{}** {}{}", e->score.letter, points(*e->score.total), remarks(*e, spec));
}

// A name, then centred columns.
std::string matrix_alignment(std::size_t columns) {
  std::string alignment(columns + 1, 'c');
  alignment[0] = 'l';
  return alignment;
}

std::string attempt_name(const BoardRow& e) {
  return e.key.attempt.empty() ? "1" : markdown_text(e.key.attempt);
}

// The first of them, as many as a table shows.
template <typename T>
std::span<const T> first(const std::vector<T>& all, std::size_t most) {
  return std::span(all).first(std::min(most, all.size()));
}

// What a table leaves out, as a paragraph; empty when it shows all.
std::string rows_left_out(const char* which, std::size_t most, std::size_t all, const char* where) {
  if (all <= most) return "";
  return fmt::format("Only the {} {} of {} are shown{}.\n\n", which, most, all, where);
}

// --- overall -----------------------------------------------------------------

// The challenge with the highest (sign = 1) or lowest (sign = -1) total; the first of equals.
std::string extreme(const Standings& all, const Standing& s, int sign) {
  const BoardRow* found = nullptr;
  const ChallengeSpec* spec = nullptr;
  for (std::size_t i = 0; i < s.best.size(); ++i) {
    const BoardRow* e = s.best[i];
    if (e == nullptr || !e->score.total) continue;
    if (found != nullptr && sign * *e->score.total <= sign * *found->score.total) continue;
    found = e;
    spec = all.challenges[i];
  }
  if (found == nullptr) return kNone;
  return fmt::format("{} {}", markdown_text(spec->title), points(*found->score.total));
}

// The titles, of many only the first.
std::string left_out_text(const Standings& all, const Standing& s) {
  constexpr std::size_t kMost = 3;
  const auto missing = left_out(all, s);
  std::string text;
  for (std::size_t i = 0; i < missing.size() && i < kMost; ++i) {
    text += (i > 0 ? ", " : "") + markdown_text(missing[i]->title);
  }
  if (missing.size() > kMost) text += fmt::format(" and {} more", missing.size() - kMost);
  return text.empty() ? kNone : text;
}

// Whether some model made several attempts at one challenge.
bool several_attempts(const Standings& all) {
  return std::ranges::any_of(all.models, [](const Standing& s) {
    return std::ranges::any_of(s.attempts, [](const auto& a) { return attempts_of(a).count > 1; });
  });
}

std::vector<std::string> overall_row(const Standings& all, const Standing& s, bool several) {
  const auto attempted = fmt::format("{}/{}", s.attempted, all.challenges.size());
  const auto value = [](std::optional<double> v) { return v ? points(*v) : std::string(kNone); };
  std::vector<std::string> row{
      s.average ? fmt::format("{}{}{}", s.rank, s.tied ? "=" : "", s.over_fewer ? " †" : "")
                : kNone,
      markdown_text(s.model),
      s.average ? with_interval(*s.average, s.interval) + remarks(all, s) : kNotRun};
  if (several) row.insert(row.end(), {value(s.first), value(s.mean)});
  row.insert(row.end(), {s.average ? letter(*s.average) : kNone, attempted, left_out_text(all, s),
                         extreme(all, s, 1), extreme(all, s, -1)});
  return row;
}

// --- per challenge -----------------------------------------------------------

std::vector<const BoardRow*> by_score(const Standings& all, std::size_t column) {
  std::vector<const BoardRow*> entries;
  for (const Standing& s : all.models) {
    if (s.best[column] != nullptr) entries.push_back(s.best[column]);
  }
  std::stable_sort(entries.begin(), entries.end(), [](const BoardRow* a, const BoardRow* b) {
    return a->score.total.value_or(-1) > b->score.total.value_or(-1);
  });
  return entries;
}

std::string speed_title(const std::vector<const BoardRow*>& entries) {
  for (const BoardRow* e : entries) {
    if (!e->score.modelled_on.empty())
      return fmt::format("Speed modelled on {}, floor = 1", markdown_text(e->score.modelled_on));
  }
  return "Speed, par = 1 (95 %)";
}

std::vector<std::string> challenge_row(const BoardRow& e, const ChallengeSpec& spec) {
  const Score& s = e.score;
  return {markdown_text(e.key.model),
          (s.total ? s.letter + " " : "") + total(s) + remarks(e, spec),
          dimension_points(s, "correctness"),
          speed_against_par(s),
          code(s.verdict),
          markdown_text(e.reason)};
}

// --- how it was measured -----------------------------------------------------

std::string machine_text(const Machine& m) {
  constexpr double kGibi = 1 << 30;
  return fmt::format("{}, {} cores, {:.0f} GiB; {}; {}", m.cpu, m.cores,
                     static_cast<double>(m.memory_bytes) / kGibi, m.os, m.compiler);
}

std::string assay_text(const BoardRow& e) {
  return e.assay_commit.empty()
             ? e.assay_version
             : fmt::format("{} ({})", e.assay_version, e.assay_commit.substr(0, 12));
}

// Machine, assay, seed and isolation, which results may share.
using Setting = std::tuple<std::string, std::string, std::string, std::string>;

struct Use {
  Setting setting;
  std::string newest;
  int cells = 0;
};

// The newest first.
std::vector<Use> settings_of(const Scoreboard& board) {
  std::map<Setting, Use> uses;
  for (const auto& [key, e] : board.entries) {
    const Setting setting{machine_text(e.machine), assay_text(e), std::to_string(e.seed),
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
  return device == Device::cpu ? "C++ on the CPU" : "CUDA on the simulated GPU";
}

std::string overall_table(const Standings& all, std::size_t most) {
  Rows rows;
  const bool several = several_attempts(all);
  bool fewer = false;
  for (const Standing& s : first(all.models, most)) {
    rows.push_back(overall_row(all, s, several));
    fewer = fewer || s.over_fewer;
  }
  std::vector<std::string> header{"Rank", "Model", "Average score (95 %)"};
  if (several) header.insert(header.end(), {"First attempts", "Mean of attempts"});
  header.insert(header.end(), {"Grade", "Attempted", "Left out", "Best", "Worst"});
  return markdown_table(header, several ? "rlrrrcclll" : "rlrcclll", rows) +
         rows_left_out("best", most, all.models.size(), "") + (fewer ? kFewerNote : "");
}

std::string rank_note() { return kRankNote; }

std::string grade_matrix(const Standings& all) {
  std::vector<std::string> header{"Model"};
  for (const ChallengeSpec* spec : all.challenges) header.push_back(markdown_text(spec->title));
  Rows rows;
  for (const Standing& s : all.models) {
    rows.push_back({markdown_text(s.model)});
    for (std::size_t i = 0; i < s.best.size(); ++i) {
      rows.back().push_back(cell_text(s.best[i], *all.challenges[i]));
    }
  }
  return markdown_table(header, matrix_alignment(all.challenges.size()), rows);
}

std::string attempts_table(const Standings& all) {
  Rows rows;
  for (const Standing& s : all.models) {
    for (std::size_t i = 0; i < s.attempts.size(); ++i) {
      if (s.attempts[i].size() < 2) continue;
      std::string list;
      for (const BoardRow* e : s.attempts[i]) {
        list += fmt::format("{}{}: {}", list.empty() ? "" : ", ", attempt_name(*e),
                            cell_text(e, *all.challenges[i]));
      }
      const Attempts a = attempts_of(s.attempts[i]);
      const auto value = [&](double v) { return a.count > 0 ? points(v) : std::string(kNotRun); };
      rows.push_back({markdown_text(s.model), markdown_text(all.challenges[i]->title),
                      value(a.best), value(a.first), value(a.mean), list});
    }
  }
  if (rows.empty()) return "";
  return "Where a model made several attempts, its best is shown above:\n\n" +
         markdown_table({"Model", "Challenge", "Best", "First", "Mean", "Attempts"}, "llrrrl",
                        rows);
}

std::string head_to_head_table(const Standings& all, std::size_t most) {
  const auto models = first(all.models, most);
  if (models.size() < 2) return "";
  std::vector<std::string> header{"Wins-ties-losses of \\ against"};
  for (const Standing& s : models) header.push_back(markdown_text(s.model));
  Rows rows;
  for (const Standing& a : models) {
    rows.push_back({markdown_text(a.model)});
    for (const Standing& b : models) {
      const Record r = head_to_head(a, b);
      const bool played = &a != &b && r.games() > 0;
      rows.back().push_back(played ? fmt::format("{}-{}-{}", r.wins, r.ties, r.losses) : kNone);
    }
  }
  return "Over the challenges that both attempted; overlapping intervals are a tie.\n\n" +
         rows_left_out("best", most, all.models.size(), "") +
         markdown_table(header, matrix_alignment(models.size()), rows);
}

std::string challenge_table(const Standings& all, std::size_t column, std::size_t most) {
  const auto entries = by_score(all, column);
  if (entries.empty()) return "Not attempted yet.\n\n";
  Rows rows;
  for (const BoardRow* e : first(entries, most)) {
    rows.push_back(challenge_row(*e, *all.challenges[column]));
  }
  return markdown_table({"Model", "Score (95 %)", "Correctness", speed_title(entries), "Verdict",
                         "Main reason"},
                        "lrrrcl", rows) +
         rows_left_out("best", most, entries.size(),
                       "; `assay show MODEL CHALLENGE` knows the others");
}

std::string side_by_side_table(const std::map<Device, Standings>& devices) {
  if (devices.size() < 2) return "";
  const auto& challenges = devices.begin()->second.challenges;
  std::vector<std::string> header{"Model", "Device"};
  for (const ChallengeSpec* spec : challenges) header.push_back(markdown_text(spec->title));
  std::map<std::string, Rows> models;
  for (const auto& [device, all] : devices) {
    for (const Standing& s : all.models) {
      std::vector<std::string> row{markdown_text(s.model), device_title(device)};
      for (std::size_t i = 0; i < s.best.size(); ++i) {
        row.push_back(cell_text(s.best[i], *challenges[i]));
      }
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

std::string how_measured(const Scoreboard& board, std::size_t most) {
  const auto uses = settings_of(board);
  Rows rows;
  for (const Use& use : first(uses, most)) {
    const auto& [machine, version, seed, isolation] = use.setting;
    rows.push_back({markdown_text(use.newest), std::to_string(use.cells), markdown_text(machine),
                    markdown_text(version), seed, markdown_text(isolation)});
  }
  return markdown_table({"Newest result", "Results", "Machine", "assay", "Seed", "Isolation"},
                        "lrllrl", rows) +
         rows_left_out("newest", most, uses.size(), "") + kMethod;
}

}  // namespace assay::report
