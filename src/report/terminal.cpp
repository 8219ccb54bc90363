#include "report/terminal.h"

#include <fmt/format.h>

#include <map>

#include "grade/partial.h"
#include "grade/reason.h"
#include "report/figures.h"
#include "util/text.h"

namespace assay {
namespace {

constexpr std::size_t kReasonColumns = 90;

std::string joined_flags(const Score& s) {
  std::string text;
  for (const Note& flag : s.flags) text += (text.empty() ? "" : "; ") + report::one_line(flag.text);
  return text;
}

std::string name_of(const CellKey& key) {
  return report::one_line(key.attempt.empty() ? key.model : key.model + "/" + key.attempt);
}

std::string score_of_run(const Score& s, const DeviceGap& gap) {
  return report::total(s) + (gap.partial && s.total ? " (partial)" : "");
}

}  // namespace

std::string summary(const std::vector<BoardEntry>& entries,
                    const std::vector<ChallengeSpec>& specs) {
  std::map<std::string, const ChallengeSpec*> by_name;
  for (const ChallengeSpec& spec : specs) by_name[spec.name] = &spec;
  TextTable table({"model", "challenge", "grade", "score (95 %)", "correctness", "speed, par = 1",
                   "verdict", "main reason"});
  std::string notes;
  for (const BoardEntry& e : entries) {
    const auto spec = by_name.find(e.cell.key.challenge);
    if (spec == by_name.end()) continue;
    const Score& s = e.score;
    const std::string name = name_of(e.cell.key);
    const std::string challenge =
        report::with_device(report::one_line(e.cell.key.challenge), e.cell.key);
    table.add({name, challenge, s.letter.empty() ? "-" : s.letter,
               score_of_run(s, device_gap(*spec->second, e.cell.key.device)),
               report::dimension_points(s, "correctness"), report::speed_against_par(s),
               report::short_verdict(s.verdict),
               report::one_line(main_reason(e.cell, e.score), kReasonColumns)});
    if (s.flags.empty()) continue;
    notes += fmt::format("note: {} {}: {}\n", name, challenge, joined_flags(s));
  }
  std::string text = table.str();
  if (!text.ends_with('\n')) text += '\n';
  return notes.empty() ? text : text + "\n" + notes;
}

}  // namespace assay
