#include "report/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "report/figures.h"
#include "report/markdown_text.h"

namespace assay::report {
namespace {

// A sum of which some parts may be unknown.
template <class Number>
class KnownSum {
 public:
  void add(const std::optional<Number>& part) {
    (part ? any_ : missing_) = true;
    sum_ += part.value_or(0);
  }
  // "" if no part is known. Some parts must not pass for the whole.
  template <class Text>
  std::string text(Text text) const {
    return any_ ? (missing_ ? "at least " : "") + text(sum_) : "";
  }

 private:
  Number sum_ = 0;
  bool any_ = false, missing_ = false;
};

// A summary of a model's cells on the board.
struct Effort {
  std::size_t answers = 0, unanswered = 0;
  KnownSum<std::int64_t> tokens;
  KnownSum<double> seconds, cost_usd;
};

std::map<std::string, Effort> efforts_of(const Scoreboard& board) {
  std::map<std::string, Effort> efforts;
  // An attempt may hold one answer in C++ and one in CUDA, which may have a row for each kind of
  // GPU. What the attempt took is in every row.
  std::set<std::array<std::string, 3>> attempts;
  std::set<std::pair<std::array<std::string, 3>, bool>> answers;
  for (const auto& [key, row] : board.entries) {
    if (is_reference(board, key.model)) continue;
    Effort& e = efforts[key.model];
    const std::array attempt{key.model, key.challenge, key.attempt};
    if (answers.emplace(attempt, key.device == Device::cpu).second) {
      ++e.answers;
      e.unanswered += row.score.verdict == Verdict::no_answer ? 1 : 0;
    }
    if (!attempts.insert(attempt).second) continue;
    e.tokens.add(row.attempt.tokens_in);
    e.tokens.add(row.attempt.tokens_out);
    e.seconds.add(row.attempt.seconds);
    e.cost_usd.add(row.attempt.cost_usd);
  }
  return efforts;
}

std::string hours(double seconds) {
  constexpr double kMinute = 60, kHour = 3600;
  if (seconds < kMinute) return fmt::format("{:.0f} s", seconds);
  return seconds < kHour ? fmt::format("{:.0f} min", seconds / kMinute)
                         : fmt::format("{:.1f} h", seconds / kHour);
}

// A link cannot contain anything that would end it: see model_info_from().
std::string linked(const ModelInfo& about) {
  const std::string text = markdown_text(about.name.empty() ? about.link : about.name);
  return about.link.empty() ? text : fmt::format("[{}]({})", text, about.link);
}

std::vector<std::string> row_of_model(const std::string& model, const ModelInfo& about,
                                      const Effort& e) {
  return {markdown_text(model),
          linked(about),
          markdown_text(about.provider),
          markdown_text(about.parameters),
          markdown_text(about.quantisation),
          markdown_text(about.harness),
          markdown_text(about.date),
          e.unanswered == 0 ? std::to_string(e.answers)
                            : fmt::format("{} ({} without an answer)", e.answers, e.unanswered),
          e.tokens.text([](std::int64_t n) { return std::to_string(n); }),
          e.seconds.text(hours),
          e.cost_usd.text(dollars)};
}

}  // namespace

std::string models_table(const Scoreboard& board, std::size_t most) {
  const auto efforts = efforts_of(board);
  if (efforts.empty())
    return "No model yet: all entrants are references, written by assay's authors.\n\n";
  std::vector<std::string> header{"Model",        "Name",    "Provider", "Parameters",
                                  "Quantisation", "Harness", "Date",     "Answers",
                                  "Tokens",       "Time",    "Cost"};
  std::string alignment = "lllllllrrrr";
  std::vector<std::vector<std::string>> rows;
  for (const auto& [model, effort] : efforts) {
    if (rows.size() == most) break;
    const auto about = board.models.find(model);
    rows.push_back(
        row_of_model(model, about == board.models.end() ? ModelInfo{} : about->second, effort));
  }
  drop_empty_columns(header, alignment, rows);
  std::string text = markdown_table(header, alignment, rows);
  if (efforts.size() > most)
    text += fmt::format("Only {} of {} are shown.\n\n", most, efforts.size());
  return text;
}

std::string reference_note(const Scoreboard& board) {
  const bool any = std::ranges::any_of(
      board.entries, [&](const auto& entry) { return is_reference(board, entry.first.model); });
  if (!any) return "";
  return "Rows marked ref are references to compare with, not models: they have no rank.\n\n";
}

}  // namespace assay::report
