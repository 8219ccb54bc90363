#include "report/markdown.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "grade/grade.h"
#include "report/figures.h"
#include "report/markdown_text.h"
#include "report/standings.h"

namespace assay {
namespace {

using namespace report;  // only names of this folder

using Rows = std::vector<std::vector<std::string>>;

constexpr const char* kNone = "–";  // no submission

constexpr const char* kRankNote =
    R"(A model's rank is one more than the number of models that are clearly better: models whose
intervals overlap tie (=). Averages are over attempted challenges only, each with its best attempt;
compare models that attempted different ones head to head.

)";

constexpr const char* kMethod =
    R"(Every submission was built from source, run under that isolation on inputs it had not seen,
checked against fp64 references, and timed beside the challenge's own naive and par implementations.
Intervals come from a bootstrap of paired timings. 'not run' means that nothing was measured, and is
never a zero; – means that there is no submission; (quick) is the score of a part of the cases.
)";

// What a reader must know before comparing a cell with others.
std::string remarks(const BoardEntry& e, const ChallengeSpec& spec) {
  std::string text;
  if (is_quick(e.score)) text += " (quick)";
  if (e.cell.spec_hash != spec.hash) text += " (older spec)";
  return text;
}

// Of an average: what is true of any score in it.
std::string remarks(const Standings& all, const Standing& s) {
  bool quick = false, older = false;
  for (std::size_t i = 0; i < s.best.size(); ++i) {
    const BoardEntry* e = s.best[i];
    if (e == nullptr || !e->score.total) continue;
    quick = quick || is_quick(e->score);
    older = older || e->cell.spec_hash != all.challenges[i]->hash;
  }
  return std::string(quick ? " (quick)" : "") + (older ? " (older spec)" : "");
}

std::string cell_text(const BoardEntry* e, const ChallengeSpec& spec) {
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

std::string attempt_name(const BoardEntry& e) {
  return e.cell.key.attempt.empty() ? "1" : markdown_text(e.cell.key.attempt);
}

// --- overall -----------------------------------------------------------------

// The challenge with the highest (sign = 1) or lowest (sign = -1) total; the first of equals.
std::string extreme(const Standings& all, const Standing& s, int sign) {
  const BoardEntry* found = nullptr;
  const ChallengeSpec* spec = nullptr;
  for (std::size_t i = 0; i < s.best.size(); ++i) {
    const BoardEntry* e = s.best[i];
    if (e == nullptr || !e->score.total) continue;
    if (found != nullptr && sign * *e->score.total <= sign * *found->score.total) continue;
    found = e;
    spec = all.challenges[i];
  }
  if (found == nullptr) return kNone;
  return fmt::format("{} {}", markdown_text(spec->title), points(*found->score.total));
}

std::string overall_table(const Standings& all) {
  Rows rows;
  for (const Standing& s : all.models) {
    const auto attempted = fmt::format("{}/{}", s.attempted, all.challenges.size());
    if (!s.average) {
      rows.push_back({kNone, markdown_text(s.model), kNotRun, kNone, attempted, kNone, kNone});
      continue;
    }
    rows.push_back({fmt::format("{}{}", s.rank, s.tied ? "=" : ""), markdown_text(s.model),
                    with_interval(*s.average, s.interval) + remarks(all, s), letter(*s.average),
                    attempted, extreme(all, s, 1), extreme(all, s, -1)});
  }
  return "#### Overall\n\n" +
         markdown_table(
             {"Rank", "Model", "Average score (95 %)", "Grade", "Attempted", "Best", "Worst"},
             "rlrccll", rows) +
         kRankNote;
}

// --- grade matrix ------------------------------------------------------------

std::string matrix(const Standings& all) {
  std::vector<std::string> header{"Model"};
  for (const ChallengeSpec* spec : all.challenges) header.push_back(markdown_text(spec->title));
  Rows rows;
  for (const Standing& s : all.models) {
    rows.push_back({markdown_text(s.model)});
    for (std::size_t i = 0; i < s.best.size(); ++i) {
      rows.back().push_back(cell_text(s.best[i], *all.challenges[i]));
    }
  }
  return "#### Grades\n\n" + markdown_table(header, matrix_alignment(all.challenges.size()), rows);
}

std::string attempts_table(const Standings& all) {
  Rows rows;
  for (const Standing& s : all.models) {
    for (std::size_t i = 0; i < s.attempts.size(); ++i) {
      if (s.attempts[i].size() < 2) continue;
      std::string list;
      for (const BoardEntry* e : s.attempts[i]) {
        list += fmt::format("{}{}: {}", list.empty() ? "" : ", ", attempt_name(*e),
                            cell_text(e, *all.challenges[i]));
      }
      rows.push_back({markdown_text(s.model), markdown_text(all.challenges[i]->title), list});
    }
  }
  if (rows.empty()) return "";
  return "Where a model made several attempts, its best is shown above:\n\n" +
         markdown_table({"Model", "Challenge", "Attempts"}, "lll", rows);
}

// --- head to head ------------------------------------------------------------

std::string head_to_head_table(const Standings& all) {
  if (all.models.size() < 2) return "";
  std::vector<std::string> header{"Wins-ties-losses of \\ against"};
  for (const Standing& s : all.models) header.push_back(markdown_text(s.model));
  Rows rows;
  for (const Standing& a : all.models) {
    rows.push_back({markdown_text(a.model)});
    for (const Standing& b : all.models) {
      const Record r = head_to_head(a, b);
      const bool played = &a != &b && r.games() > 0;
      rows.back().push_back(played ? fmt::format("{}-{}-{}", r.wins, r.ties, r.losses) : kNone);
    }
  }
  return "#### Head to head\n\nOver the challenges that both attempted; overlapping intervals are "
         "a "
         "tie.\n\n" +
         markdown_table(header, matrix_alignment(all.models.size()), rows);
}

// --- per challenge -----------------------------------------------------------

std::vector<const BoardEntry*> by_score(const Standings& all, std::size_t column) {
  std::vector<const BoardEntry*> entries;
  for (const Standing& s : all.models) {
    if (s.best[column] != nullptr) entries.push_back(s.best[column]);
  }
  std::stable_sort(entries.begin(), entries.end(), [](const BoardEntry* a, const BoardEntry* b) {
    return a->score.total.value_or(-1) > b->score.total.value_or(-1);
  });
  return entries;
}

std::string speed_title(const Standings& all, std::size_t column) {
  for (const BoardEntry* e : by_score(all, column)) {
    if (!e->score.modelled_on.empty())
      return fmt::format("Speed modelled on {}, floor = 1", e->score.modelled_on);
  }
  return "Speed, par = 1 (95 %)";
}

std::string challenge_table(const Standings& all, std::size_t column) {
  const ChallengeSpec& spec = *all.challenges[column];
  Rows rows;
  for (const BoardEntry* e : by_score(all, column)) {
    const Score& s = e->score;
    rows.push_back({markdown_text(e->cell.key.model),
                    (s.total ? s.letter + " " : "") + total(s) + remarks(*e, spec),
                    dimension_points(s, "correctness"), speed_against_par(s), code(s.verdict),
                    markdown_text(main_reason(*e, spec))});
  }
  std::string text =
      fmt::format("#### {} ({})\n\n", markdown_text(spec.title), markdown_text(spec.difficulty));
  if (rows.empty()) return text + "Not attempted yet.\n\n";
  return text + markdown_table({"Model", "Score (95 %)", "Correctness", speed_title(all, column),
                                "Verdict", "Main reason"},
                               "lrrrcl", rows);
}

// --- how it was measured -----------------------------------------------------

std::string machine_text(const Machine& m) {
  constexpr double kGibi = 1 << 30;
  return fmt::format("{}, {} cores, {:.0f} GiB; {}; {}", m.cpu, m.cores,
                     static_cast<double>(m.memory_bytes) / kGibi, m.os, m.compiler);
}

std::string assay_text(const BoardEntry& e) {
  return e.assay_commit.empty()
             ? e.assay_version
             : fmt::format("{} ({})", e.assay_version, e.assay_commit.substr(0, 12));
}

std::string how_measured(const Scoreboard& board) {
  using Setting = std::tuple<std::string, std::string, std::string, std::string>;
  struct Use {
    std::string newest;
    int cells = 0;
  };
  std::map<Setting, Use> uses;
  for (const auto& [key, e] : board.entries) {
    Use& use = uses[{machine_text(e.machine), assay_text(e), std::to_string(e.cell.seed),
                     e.cell.isolation}];
    use.newest = std::max(use.newest, e.cell.finished_at);
    ++use.cells;
  }
  std::vector<std::pair<Setting, Use>> sorted(uses.begin(), uses.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.newest > b.second.newest; });
  Rows rows;
  for (const auto& [setting, use] : sorted) {
    const auto& [machine, version, seed, isolation] = setting;
    rows.push_back({markdown_text(use.newest), std::to_string(use.cells), markdown_text(machine),
                    markdown_text(version), seed, markdown_text(isolation)});
  }
  return "### How it was measured\n\n" +
         markdown_table({"Newest result", "Results", "Machine", "assay", "Seed", "Isolation"},
                        "lrllrl", rows) +
         kMethod;
}

const char* device_title(Device device) {
  return device == Device::cpu ? "C++ on the CPU" : "CUDA on the simulated GPU";
}

std::string device_heading(Device device) {
  const std::string heading = fmt::format("### {}\n\n", device_title(device));
  if (device != Device::sim) return heading;
  return heading +
         "The PTX that nvcc made, executed and checked by assay's simulator. Speeds are modelled "
         "from "
         "exact counts, never measured; `assay show` has the formula.\n\n";
}

std::string device_tables(const Scoreboard& board, const std::vector<ChallengeSpec>& specs,
                          Device device) {
  const Standings all = make_standings(board, specs, device);
  std::string text =
      overall_table(all) + matrix(all) + attempts_table(all) + head_to_head_table(all);
  for (std::size_t i = 0; i < specs.size(); ++i) text += challenge_table(all, i);
  return text;
}

// The models that answered on several devices, a line for each device.
std::string side_by_side(const Scoreboard& board, const std::vector<ChallengeSpec>& specs,
                         const std::vector<Device>& all_devices) {
  std::vector<std::string> header{"Model", "Device"};
  for (const ChallengeSpec& spec : specs) header.push_back(markdown_text(spec.title));
  std::map<std::string, Rows> models;
  for (const Device device : all_devices) {
    const Standings all = make_standings(board, specs, device);
    for (const Standing& s : all.models) {
      std::vector<std::string> row{markdown_text(s.model), device_title(device)};
      for (std::size_t i = 0; i < s.best.size(); ++i) row.push_back(cell_text(s.best[i], specs[i]));
      models[s.model].push_back(std::move(row));
    }
  }
  Rows rows;
  for (const auto& [model, lines] : models) {
    if (lines.size() > 1) rows.insert(rows.end(), lines.begin(), lines.end());
  }
  if (rows.empty()) return "";
  return "### Side by side\n\nModels with answers for several devices. A device's speeds say "
         "nothing about another's.\n\n" +
         markdown_table(header, "l" + matrix_alignment(specs.size()), rows);
}

}  // namespace

std::string ranking_section(const Scoreboard& board, const std::vector<ChallengeSpec>& specs) {
  std::string text = "<!-- Generated by `assay report`. Edits here will be lost. -->\n\n";
  if (board.entries.empty()) {
    return text + "Nothing has been measured yet: run `scripts/run.sh`.\n\n";
  }
  const auto all_devices = devices(board);
  for (const Device device : all_devices) {
    text += device_heading(device) + device_tables(board, specs, device);
  }
  text += side_by_side(board, specs, all_devices);
  return text + how_measured(board) + '\n';
}

}  // namespace assay
