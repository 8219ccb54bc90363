#include "grade/grade.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "grade/dimensions.h"
#include "measure/statistics.h"
#include "records/lookup.h"

namespace assay {
namespace {

using grading::CaseTable;

// An unsupported completeness or resource case is not a failure; elsewhere, being unsupported is.
bool counts(const CaseResult& r) { return r.verdict == Verdict::harness_error || is_failure(r); }

bool any_case(const CellResult& cell, Verdict v) {
  const auto has = [v](const CaseResult& r) { return r.verdict == v; };
  return std::any_of(cell.cases.begin(), cell.cases.end(), has);
}

Verdict worst_verdict(const CellResult& cell) {
  Verdict worst = cell.build.verdict;
  bool any_ran = false;
  for (const CaseResult& r : cell.cases) {
    any_ran = any_ran || was_run(r.verdict);
    if (counts(r)) worst = std::min(worst, r.verdict);
  }
  if (worst != Verdict::ok) return worst;
  const auto required = [](const CaseResult& r) {
    return r.verdict == Verdict::needs_gpu && r.group != CaseGroup::completeness;
  };
  if (any_ran && std::ranges::none_of(cell.cases, required)) return worst;
  return any_case(cell, Verdict::needs_gpu) ? Verdict::needs_gpu : Verdict::skipped;
}

// Why nothing can be earned: the submission never ran. Empty if it ran.
std::string unusable(const CellResult& cell) {
  const Verdict build = cell.build.verdict;
  if (build == Verdict::harness_error || build == Verdict::skipped) return "";
  if (build != Verdict::ok) return description(build);
  return any_case(cell, Verdict::load_error) ? description(Verdict::load_error) : "";
}

bool failed_core(const CaseTable& table) {
  const auto failed = [&](const CaseSpec& c) {
    const CaseResult* r = table.ran(c.name);
    return r != nullptr && r->verdict != Verdict::ok &&
           (c.group == CaseGroup::core || is_wrong_at_size(*r));
  };
  const auto& cases = table.spec().cases;
  return std::any_of(cases.begin(), cases.end(), failed);
}

// Flags the cases of a graded cell that were not run because they need a GPU, and their cost.
void flag_gpu(const CaseTable& table, Score& score) {
  if (!table.grades_gpu()) return;
  std::vector<std::string> failed, lost;
  std::size_t count = 0;
  const auto& results = table.cell().cases;
  for (const CaseSpec& c : table.spec().cases) {
    const auto r = std::ranges::find(results, c.name, &CaseResult::name);
    if (r == results.end() || r->verdict != Verdict::needs_gpu) continue;
    ++count;
    auto& list = c.group == CaseGroup::completeness ? lost : failed;
    const std::string& name = c.group == CaseGroup::completeness ? c.capability : c.name;
    if (std::ranges::find(list, name) == list.end()) list.push_back(name);
  }
  if (count == 0) return;
  std::string text = fmt::format("{} of {} cases not run: need a GPU", count, results.size());
  if (!failed.empty()) text += "; count as failed: " + grading::some_of(failed);
  if (!lost.empty()) text += "; capability lost: " + grading::some_of(lost);
  score.flags.push_back({Note::Kind::needs_gpu, text});
}

Dimension performance(const CaseTable& table, const Gpu& on, Score& score) {
  if (table.cell().key.device != Device::sim)
    return grading::performance(table, score.speeds, score.flags);
  score.modelled_on = on.name;
  score.gpu_sheet = on.sheet;
  return grading::modelled_performance(table, on, score.speeds, score.flags);
}

std::vector<Dimension> all_dimensions(const CaseTable& table, const Gpu& on, Score& score) {
  return {grading::correctness(table), grading::accuracy(table),     performance(table, on, score),
          grading::resources(table),   grading::completeness(table), grading::tests(table)};
}

void set_total(Score& score, double total, Interval interval) {
  const double most = score.capped ? kFailedCoreCap : 100;
  score.total = std::min(total, most);
  score.interval = clamp(interval, 0, most);
  score.letter = letter(*score.total);
}

// Sums up the dimensions; no total if one is missing, unless the run was quick.
void add_up(Score& score, bool quick) {
  double points = 0, max = 0;
  Interval interval;
  for (const Dimension& d : score.dimensions) {
    if (!d.points && !quick) return;
    if (!d.points) continue;
    points += *d.points;
    max += d.max;
    interval = interval + d.interval;
  }
  if (max <= 0) return;
  const double scale = quick ? 100 / max : 1;
  set_total(score, scale * points, scale * interval);
}

void score_zero(Score& score, const std::string& why) {
  for (Dimension& d : score.dimensions) d = grading::scored(d.name, d.max, 0, why);
  score.speeds.clear();
  score.flags.clear();
  set_total(score, 0, {});
}

}  // namespace

bool never_ran(const Score& s) {
  return s.verdict == Verdict::no_answer || s.verdict == Verdict::build_error ||
         s.verdict == Verdict::build_limit || s.verdict == Verdict::load_error;
}

double shown(double points) { return std::round(points * 10) / 10; }

std::string letter(double total) {
  constexpr std::array<std::pair<double, const char*>, 8> kLetters{
      {{90, "A"}, {85, "A-"}, {80, "B+"}, {75, "B"}, {70, "B-"}, {65, "C+"}, {60, "C"}, {50, "D"}}};
  for (const auto& [least, name] : kLetters) {
    if (shown(total) >= least) return name;
  }
  return "F";
}

Score grade(const ChallengeSpec& spec, const CellResult& cell, std::string_view on) {
  const CaseTable table(spec, cell);
  Score score;
  score.verdict = worst_verdict(cell);
  if (table.quick()) score.flags.push_back({Note::Kind::quick, "quick"});
  flag_gpu(table, score);
  score.dimensions = all_dimensions(table, gpu_named(on), score);
  std::erase_if(score.dimensions, [](const Dimension& d) { return d.max <= 0; });
  if (score.verdict == Verdict::harness_error) return score;
  if (const std::string why = unusable(cell); !why.empty()) {
    score_zero(score, why);
    return score;
  }
  score.capped = failed_core(table);
  add_up(score, table.quick());
  return score;
}

}  // namespace assay
