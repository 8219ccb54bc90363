#include "report/opinions.h"

#include <fmt/format.h>

#include <algorithm>

#include "judge/agreement.h"
#include "report/figures.h"
#include "report/markdown.h"
#include "util/text.h"

namespace assay::report {
namespace {

using judge::Judged;
using judge::JudgeView;
using judge::Opinion;

constexpr std::size_t kShownContradictions = 10, kOpinionReason = 200;

std::string rubric_name(const judge::Rubric& rubric) { return rubric.name + " " + rubric.version; }

// "design 7, clarity 6.5"
std::string marks_text(const Opinion& opinion) {
  std::string text;
  for (const judge::Criterion& c : opinion.rubric.criteria)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", c.key, tenths(*opinion.mark(c.key)));
  return text;
}

// For several samples, how many there are and how many count; "" for the usual single one.
std::string samples_text(const Opinion& opinion) {
  const std::size_t all = opinion.samples.size(), counted = opinion.counted();
  if (all == 1) return "";
  return counted == all
             ? fmt::format(", mean of {} samples", all)
             : fmt::format(", mean of {} samples, {} more without marks", counted, all - counted);
}

const judge::OpinionSample& first_with_marks(const Opinion& opinion) {
  return *std::ranges::find_if(opinion.samples,
                               [](const judge::OpinionSample& s) { return !s.marks.empty(); });
}

std::string opinion_lines(const Opinion& opinion, const BoardRow& row) {
  const std::string head =
      fmt::format("  opinion of {} by {}: ", one_line(opinion.judge), rubric_name(opinion.rubric));
  if (opinion.source_hash != row.source_hash)
    return head + "of other sources than were measured: left out\n";
  const auto value = opinion.value();
  if (!value) {
    return head + fmt::format("none, no reply could be read: {}\n",
                              one_line(opinion.samples.empty() ? "nothing was asked"
                                                               : opinion.samples.front().problem));
  }
  std::string text = head + fmt::format("{} ({} of 10{}); not part of the score\n",
                                        marks_text(opinion), tenths(*value), samples_text(opinion));
  for (const judge::Mark& m : first_with_marks(opinion).marks)
    text += fmt::format("    {:<9} {}\n", m.key, one_line(m.reason));
  return text;
}

std::string correlation(std::optional<double> value) {
  // Adding 0.0 avoids "-0.00".
  return value ? fmt::format("{:.2f}", *value + 0.0) : "–";
}

std::string answer_name(const CellKey& key) {
  return key.attempt.empty() ? key.model : fmt::format("{}, attempt {}", key.model, key.attempt);
}

std::string title_of(const std::vector<ChallengeSpec>& specs, const std::string& challenge) {
  return std::ranges::find(specs, challenge, &ChallengeSpec::name)->title;
}

void add_agreements(Page& page, const JudgeView& view) {
  page.heading(3, "Agreement with measurement");
  std::vector<Page::Row> rows;
  for (const judge::Agreement& a : view.agreements) {
    rows.push_back({device_title(a.device),
                    a.challenge == nullptr ? "All challenges" : a.challenge->title,
                    std::to_string(a.cells), correlation(a.tau_b), correlation(a.rho)});
  }
  page.table({"Device", "Challenge", "Answers", "Kendall's tau-b", "Spearman's rho"}, "llrrr",
             rows);
}

void add_contradictions(Page& page, const std::string& title,
                        const std::vector<const Judged*>& contradictions,
                        const std::vector<ChallengeSpec>& specs) {
  page.heading(3, title);
  std::vector<Page::Row> rows;
  for (const Judged* j : contradictions) {
    if (rows.size() == kShownContradictions) break;
    rows.push_back({answer_name(j->row->key), title_of(specs, j->row->key.challenge),
                    device_title(j->row->key.device), tenths(j->value),
                    grade_and_total(j->row->score), j->row->reason,
                    one_line(first_with_marks(*j->opinion).marks.front().reason, kOpinionReason)});
  }
  if (rows.empty()) {
    page.paragraph("None.");
    return;
  }
  if (contradictions.size() > rows.size()) {
    page.paragraph(fmt::format("The {} furthest apart of {}.", rows.size(), contradictions.size()));
  }
  page.table({"Model", "Challenge", "Device", "Opinion", "Score", "Measured", "The judge said"},
             "lllrrll", rows);
}

void add_left_out(Page& page, const judge::LeftOut& left) {
  if (left.all() == 0) return;
  std::string text;
  const auto add = [&](std::size_t count, const char* why) {
    if (count > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, why);
  };
  add(left.other_sources, "of other sources than were measured");
  add(left.no_marks, "without a reply that could be read");
  add(left.no_score, "of answers without a full score of today");
  page.paragraph(fmt::format("Left out: {}.", text));
}

void add_judge(Page& page, const JudgeView& view, const std::vector<ChallengeSpec>& specs) {
  page.heading(2, fmt::format("{} by {}", view.judge, rubric_name(*view.rubric)));
  std::string criteria;
  for (const judge::Criterion& c : view.rubric->criteria)
    criteria += fmt::format("{}{} (weight {:g})", criteria.empty() ? "" : ", ", c.title, c.weight);
  page.paragraph(
      fmt::format("{} answers. The opinion is the weighted mean of the marks, 0 to 10: "
                  "{}.",
                  view.judged.size(), criteria));
  add_left_out(page, view.left_out);
  if (view.judged.empty()) return;
  add_agreements(page, view);
  add_contradictions(page, "Praised and failed", view.praised_failures, specs);
  add_contradictions(page, "Scorned and right", view.scorned_successes, specs);
}

}  // namespace

std::string opinions_text(const std::vector<Opinion>& opinions, const BoardRow& row) {
  if (opinions.empty()) return "";
  std::string text = "\nopinions:\n";
  for (const Opinion& o : opinions) text += opinion_lines(o, row);
  return text;
}

void add_judges(Page& page, const Scoreboard& board, const std::vector<ChallengeSpec>& specs,
                const std::vector<Opinion>& opinions) {
  page.paragraph(
      "What language models say of the same answers whose scores were measured. A judge sees the "
      "task, the source and a rubric, and nothing of the measurement. No opinion enters a score, a "
      "rank or an average.");
  page.paragraph(
      "Kendall's tau-b and Spearman's rho compare the order of the opinions with the order of the "
      "scores: 1 is the same order, 0 none, -1 the reverse; a dash where all opinions or all "
      "scores "
      "are equal. Ties count as ties. 'All challenges' is over the answers to those challenges "
      "that "
      "the device grades whole, so it also sees whether a challenge is hard. Of few answers no "
      "figure says much.");
  page.paragraph(fmt::format(
      "Two lists name where a judge and measurement contradict each other, the furthest apart "
      "first: an opinion of {:g} or more where the score is below {:g}, which is what a failed "
      "core "
      "case leaves; and an opinion of {:g} or less where the score is {:g} or more.",
      judge::kHighOpinion, judge::kFailedScore, judge::kLowOpinion, judge::kGoodScore));
  for (const JudgeView& view : judge::judge_views(board, specs, opinions))
    add_judge(page, view, specs);
}

}  // namespace assay::report
