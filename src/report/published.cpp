#include "report/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "compare/field.h"
#include "report/figures.h"
#include "report/markdown.h"

namespace assay::report {
namespace {

using compare::Published;

std::string published_grade(const compare::PublishedGrade& grade) {
  return grade.letter.empty() ? points(grade.value) : grade.letter;
}

// Challenges of assay in its order, then others.
std::vector<std::string> challenges_of(const Published& p,
                                       const std::vector<ChallengeSpec>& specs) {
  std::set<std::string> graded;
  for (const auto& [model, grades] : p.grades) {
    for (const auto& [challenge, grade] : grades) graded.insert(challenge);
  }
  std::vector<std::string> order;
  for (const ChallengeSpec& spec : specs) {
    if (graded.erase(spec.name) > 0) order.push_back(spec.name);
  }
  order.insert(order.end(), graded.begin(), graded.end());
  return order;
}

std::string challenge_name(const std::string& name, const std::vector<ChallengeSpec>& specs) {
  const auto spec = std::ranges::find(specs, name, &ChallengeSpec::name);
  return spec == specs.end() ? name : spec->title;
}

void add_grades(Page& page, const Published& p, const compare::Recomputed& order,
                const std::vector<ChallengeSpec>& specs) {
  const auto challenges = challenges_of(p, specs);
  std::vector<std::string> header{"Model"};
  for (const std::string& c : challenges) header.push_back(challenge_name(c, specs));
  std::vector<Page::Row> rows;
  for (const auto& place : order.places) {
    Page::Row row{place.model};
    for (const std::string& c : challenges) {
      const auto& grades = p.grades.at(place.model);
      const auto grade = grades.find(c);
      row.emplace_back(grade == grades.end() ? "–" : published_grade(grade->second));
    }
    rows.push_back(std::move(row));
  }
  page.table(header, "l" + std::string(challenges.size(), 'c'), rows);
}

std::string average_text(const Published& p, double value) {
  return p.letters ? fmt::format("{:.2f} ({})", value, compare::nearest_letter(value))
                   : fmt::format("{:.1f}", value);
}

void add_recomputed(Page& page, const Published& p, const compare::Recomputed& all) {
  page.heading(2, "What the grades average to");
  page.paragraph(p.letters ? "Mean of grade points: A 4, A- 3.7, B+ 3.3, B 3 and so on, over the "
                             "challenges that each model has a grade for."
                           : "Mean of points over the challenges that each model has a grade for.");
  std::vector<Page::Row> rows;
  for (const auto& place : all.places) {
    rows.push_back({std::to_string(place.rank), place.model, average_text(p, place.average),
                    std::to_string(place.challenges),
                    place.published_rank > 0 ? std::to_string(place.published_rank) : "–",
                    place.published_average.empty() ? "–" : place.published_average});
  }
  page.table({"Rank", "Model", "Average", "Challenges", "Published rank", "Published average"},
             "rlrrrr", rows);
  if (p.ranking.empty()) return;
  page.heading(2, "Where the published ranking contradicts the published grades");
  for (const std::string& sentence : all.contradictions) page.bullet(sentence);
  if (all.contradictions.empty()) page.paragraph("Nowhere.");
}

std::string normalised(const std::string& name) {
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) text += static_cast<char>(std::tolower(byte));
  }
  return text;
}

void add_measured(Page& page, const Published& p, const Scoreboard& board,
                  const std::vector<ChallengeSpec>& specs) {
  page.heading(2, "Beside what was measured");
  bool any = false;
  for (const Device device : compare::devices_of(board)) {
    const compare::Field field = compare::make_field(board, specs, device);
    std::vector<Page::Row> rows;
    for (const auto& [model, grades] : p.grades) {
      const std::string name = normalised(model);
      const auto player = std::ranges::find_if(
          field.players,
          [&](const compare::Player& candidate) { return normalised(candidate.model) == name; });
      if (player == field.players.end()) continue;
      for (std::size_t c = 0; c < specs.size(); ++c) {
        const auto grade = grades.find(specs[c].name);
        const compare::Cell& cell = player->cells[c];
        if (grade == grades.end() || cell.best == nullptr) continue;
        rows.push_back(
            {player->model, specs[c].title, published_grade(grade->second),
             cell.count() == 0 ? kNotRun : with_interval(cell.mean.value, cell.mean.interval),
             std::to_string(cell.count())});
      }
    }
    if (rows.empty()) continue;
    any = true;
    page.heading(3, device_title(device));
    page.table({"Model", "Challenge", "Published", "Measured (95 %)", "Attempts"}, "llcrr", rows);
  }
  if (!any) page.paragraph("None of these models has been measured here.");
}

}  // namespace

void add_published(Page& page, const Published& p, const Scoreboard& board,
                   const std::vector<ChallengeSpec>& specs) {
  const compare::Recomputed all = compare::recompute(p);
  page.paragraph("Source: " + p.source + ".");
  page.paragraph(
      "These are the grades as they were published. assay measured none of them, and none enters "
      "its "
      "rankings.");
  add_grades(page, p, all, specs);
  add_recomputed(page, p, all);
  add_measured(page, p, board, specs);
}

}  // namespace assay::report
