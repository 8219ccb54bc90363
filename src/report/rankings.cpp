#include "report/rankings.h"

#include <fmt/format.h>

#include <limits>
#include <map>

#include "grade/currency.h"
#include "report/markdown.h"
#include "report/markdown_text.h"
#include "report/models.h"
#include "report/mutation_scores.h"
#include "report/standings.h"

namespace assay {
namespace {

using namespace report;  // only names of this folder

constexpr const char* kNothingMeasured = "Nothing has been measured yet: run `scripts/run.sh`.\n\n";

constexpr const char* kFiguresNote =
    R"(Solved: challenges with a correct attempt. pass@1: the chance that one attempt is correct; pass@k:
that one of k is, over the challenges with so many attempts. Faster: the share of attempts that are
correct and faster (fast_1). Speed-ups are geometric means over correct answers, one a challenge, and
say nothing about the others.

)";

constexpr const char* kSideBySide =
    R"(Models with answers for several devices. A device's speeds say nothing about another's.

)";

constexpr const char* kOracleNote =
    R"(Right answers were changed in one place each: an operator, a constant, a type, a statement less.
Caught: a case fails. Harmless: none does, and a list in the challenge's folder says why none needs
to. Missed: a hole. No mutants: they do not compile, or compile to the same code. The score is caught
/ (caught + missed). `assay selftest --mutants N` tries them again.

)";

std::map<Device, Standings> standings_by_device(const Scoreboard& board,
                                                const std::vector<ChallengeSpec>& specs,
                                                compare::By by) {
  std::map<Device, Standings> all;
  for (const Device device : compare::devices_of(board)) {
    all.emplace(device, make_standings(board, specs, device, by));
  }
  return all;
}

std::string heading(int level, const std::string& text) {
  return std::string(static_cast<std::size_t>(level), '#') + ' ' + text + "\n\n";
}

// The text under its heading, or "" if the text is empty.
std::string part(const std::string& title, const std::string& text) {
  return text.empty() ? "" : heading(3, title) + text;
}

std::string stale_paragraph(const Scoreboard& board, const std::vector<ChallengeSpec>& specs) {
  const std::string text = stale_text(count_stale(board, specs));
  return text.empty() ? "" : text + "\n\n";
}

std::string device_part(Device device, const Standings& all) {
  constexpr auto kAll = std::numeric_limits<std::size_t>::max();
  std::string text = heading(2, device_title(device)) + device_note(all) +
                     part("Overall", overall_table(all, kAll) + rank_note(all.by)) +
                     part("Grades", grade_matrix(all) + attempts_table(all));
  if (const std::string strengths = strength_table(all, kRowsPerChallenge); !strengths.empty())
    text += part("Head to head",
                 strength_note() + strengths + head_to_head_table(all, kModelsHeadToHead));
  text += part("Fewer challenges", subset_tables(all, kSubsets));
  if (const std::string figures = figures_table(all, kRowsPerChallenge); !figures.empty())
    text += part("Solved, and how fast", figures + kFiguresNote);
  for (std::size_t i = 0; i < all.field.challenges.size(); ++i) {
    const ChallengeSpec& spec = *all.field.challenges[i];
    text += part(fmt::format("{} ({})", markdown_text(spec.title), markdown_text(spec.difficulty)),
                 challenge_table(all, i, kRowsPerChallenge));
  }
  return text;
}

}  // namespace

std::string ranking_section(const Scoreboard& board, const std::vector<ChallengeSpec>& specs,
                            const std::string& rankings, compare::By by,
                            const std::vector<mutate::ChallengeScore>& oracle) {
  std::string text = kGenerated + std::string("\n\n");
  if (board.entries.empty()) return text + kNothingMeasured;
  text += stale_paragraph(board, specs) + targets_note(board) + machines_note(board);
  for (const auto& [device, all] : standings_by_device(board, specs, by)) {
    text +=
        heading(3, device_title(device)) + device_note(all) + overall_table(all, kModelsInReadme);
  }
  return text + rank_note(by) + reference_note(board) + heading(3, "Models tested") +
         models_table(board, kModelsInReadme) + mutation_sentence(oracle, specs) +
         fmt::format("Every challenge, attempt and duel: [{}]({}).\n\n", markdown_text(rankings),
                     link_target(rankings));
}

std::string rankings_document(const Scoreboard& board, const std::vector<ChallengeSpec>& specs,
                              const std::string& readme, compare::By by,
                              const std::vector<mutate::ChallengeScore>& oracle) {
  std::string text = kGenerated + std::string("\n\n") + heading(1, "Rankings");
  if (!readme.empty()) {
    text += fmt::format("What assay is and how to read this: [{}]({}).\n\n", markdown_text(readme),
                        link_target(readme));
  }
  if (board.entries.empty()) return text + kNothingMeasured;
  text += stale_paragraph(board, specs) + targets_note(board) + machines_note(board);
  text +=
      heading(2, "Models tested") + models_table(board, kRowsPerChallenge) + reference_note(board);
  const auto all_devices = standings_by_device(board, specs, by);
  for (const auto& [device, all] : all_devices) text += device_part(device, all);
  const std::string both = side_by_side_table(all_devices);
  if (!both.empty()) text += heading(2, "Side by side") + kSideBySide + both;
  text += heading(2, "How it was measured") + how_measured(board, kSettings);
  if (!oracle.empty())
    text +=
        '\n' + heading(2, "How good the cases are") + kOracleNote + mutation_table(oracle, specs);
  return text;
}

}  // namespace assay
