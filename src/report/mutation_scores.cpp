#include "report/mutation_scores.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "report/markdown_text.h"
#include "spec/spec.h"
#include "util/text.h"

namespace assay::report {
namespace {

using mutate::ChallengeScore;

const ChallengeSpec* spec_of(const ChallengeScore& score, const std::vector<ChallengeSpec>& specs) {
  const auto it = std::ranges::find(specs, score.challenge, &ChallengeSpec::name);
  return it == specs.end() ? nullptr : &*it;
}

bool is_current(const ChallengeScore& score, const std::vector<ChallengeSpec>& specs) {
  const ChallengeSpec* const spec = spec_of(score, specs);
  return spec != nullptr && still_judges(*spec, score.judged_by);
}

}  // namespace

std::string percent(const mutate::Tally& tally) {
  const auto score = tally.score();
  return score ? fmt::format("{} %", tenths(100 * *score)) : "";
}

std::string mutation_sentence(const std::vector<ChallengeScore>& scores,
                              const std::vector<ChallengeSpec>& specs) {
  mutate::Tally sum;
  std::set<std::string> stale;
  for (const ChallengeScore& s : scores) {
    if (is_current(s, specs))
      sum.add(s.tally);
    else
      stale.insert(s.challenge);
  }
  std::string text;
  if (const auto score = sum.score()) {
    text = fmt::format("The cases catch {} of {} harmful mutants of right answers ({}).",
                       sum.killed, sum.killed + sum.survived, percent(sum));
  }
  if (!stale.empty()) {
    text += fmt::format("{}Mutants of {} {} are to be tried again: the cases have changed.",
                        text.empty() ? "" : " ", stale.size(),
                        stale.size() == 1 ? "challenge" : "challenges");
  }
  return text.empty() ? "" : text + "\n\n";
}

std::string mutation_table(const std::vector<ChallengeScore>& scores,
                           const std::vector<ChallengeSpec>& specs) {
  std::vector<std::vector<std::string>> rows;
  for (const ChallengeScore& s : scores) {
    const auto number = [](std::size_t n) { return fmt::format("{}", n); };
    rows.push_back({markdown_text(s.challenge), markdown_text(s.of), number(s.possible),
                    number(s.tally.total()), number(s.tally.does_not_compile + s.tally.same_code),
                    number(s.tally.killed), number(s.tally.listed), number(s.tally.survived),
                    is_current(s, specs) ? percent(s.tally) : "stale"});
  }
  if (rows.empty()) return "";
  return markdown_table({"Challenge", "Answer", "Mutants", "Tried", "No mutants", "Caught",
                         "Harmless", "Missed", "Score"},
                        "llrrrrrrr", rows);
}

}  // namespace assay::report
