#include "grade/dimensions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "measure/statistics.h"
#include "records/lookup.h"
#include "util/text.h"

namespace assay::grading {
namespace {

// The weighted share of points earned.
struct Tally {
  double earned = 0, possible = 0;
  void add(double weight, double share) {
    earned += weight * share;
    possible += weight;
  }
  double share() const { return possible > 0 ? earned / possible : 0; }
};

std::vector<std::string> names_of(const ChallengeSpec& spec, bool (*wanted)(CaseGroup)) {
  std::vector<std::string> names;
  for (const CaseSpec& c : spec.cases) {
    if (wanted(c.group)) names.push_back(c.name);
  }
  return names;
}

std::string with_list(std::string text, const char* label, const std::vector<std::string>& names) {
  if (!names.empty()) text += fmt::format("; {}: {}", label, some_of(names));
  return text;
}

// A rule's metric over its cases that ran.
struct Measured {
  std::vector<double> values;
  std::vector<std::string> failed;
  std::vector<std::string> hosted;  // computed on the host, which also earns nothing
  std::string unreported;           // a passed case without the metric, which earns nothing
};

Measured measure(const ResourceRule& rule, const CaseTable& table) {
  Measured measured;
  for (const std::string& name : rule.case_names) {
    const CaseResult* r = table.ran(name);
    if (r == nullptr) continue;
    if (r->verdict != Verdict::ok) {
      measured.values.push_back(rule.zero);
      measured.failed.push_back(name);
      continue;
    }
    if (!work_on_host(*r).empty()) {
      measured.values.push_back(rule.zero);
      measured.hosted.push_back(name);
      continue;
    }
    const double* metric = find_metric(r->metrics, rule.metric);
    if (metric == nullptr) {
      measured.values.push_back(rule.zero);
      measured.unreported = name;
      continue;
    }
    measured.values.push_back(std::isnan(*metric) ? rule.zero : *metric);
  }
  return measured;
}

}  // namespace

CaseTable::CaseTable(const ChallengeSpec& spec, const CellResult& cell)
    : spec_(spec),
      cell_(cell),
      failed_(std::ranges::any_of(cell.cases, &is_failure)),
      simulated_(std::ranges::any_of(cell.cases, &ran_kernels)) {
  for (const CaseResult& r : cell.cases) results_.insert_or_assign(r.name, &r);
  quick_ = is_quick();
}

const CaseResult* CaseTable::find(const std::string& name) const {
  const auto it = results_.find(name);
  return it == results_.end() ? nullptr : it->second;
}

bool CaseTable::counts_as_run(const CaseResult& r) const {
  return was_run(r.verdict) || (r.verdict == Verdict::needs_gpu && grades_gpu());
}

const CaseResult* CaseTable::ran(const std::string& name) const {
  const CaseResult* r = find(name);
  const bool measured = r != nullptr && counts_as_run(*r) && r->verdict != Verdict::harness_error;
  return measured ? r : nullptr;
}

bool CaseTable::passed(const std::string& name) const {
  const CaseResult* r = ran(name);
  return r != nullptr && r->verdict == Verdict::ok;
}

bool CaseTable::is_quick() const {
  bool any_ran = false, any_left_out = false;
  for (const CaseSpec& c : spec_.cases) {
    const CaseResult* r = find(c.name);
    const bool left_out = r == nullptr || !counts_as_run(*r);
    if (left_out && c.quick) return false;
    (left_out ? any_left_out : any_ran) = true;
  }
  return any_ran && any_left_out;
}

std::string CaseTable::missing(const std::vector<std::string>& names) const {
  std::size_t count = 0;
  const CaseResult* first = nullptr;
  for (const std::string& name : names) {
    if (ran(name) != nullptr) continue;
    ++count;
    if (first == nullptr) first = find(name);
  }
  if (count == 0 || (quick_ && count < names.size())) return "";
  if (quick_) return "not run: no case of it is part of a quick run";
  std::string why = fmt::format("not run: {} of {} cases", count, names.size());
  if (first != nullptr && !first->detail.empty()) why += fmt::format(" ({})", first->detail);
  return why;
}

double share_on_scale(double value, double full, double zero) {
  if (std::isnan(value)) return 0;
  const bool smaller_is_better = full <= zero;
  if (smaller_is_better ? value <= full : value >= full) return 1;
  if (smaller_is_better ? value >= zero : value <= zero) return 0;
  if (full > 0 && zero > 0) return std::log(zero / value) / std::log(zero / full);
  return (zero - value) / (zero - full);
}

Dimension scored(std::string name, double max, double share, std::string why) {
  const double points = max * share;
  return {.name = std::move(name),
          .points = points,
          .max = max,
          .interval = {points, points},
          .why = std::move(why)};
}

Dimension not_run(std::string name, double max, std::string why) {
  return {.name = std::move(name),
          .points = std::nullopt,
          .max = max,
          .interval = {},
          .why = std::move(why)};
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kShown); ++i) {
    text += (i > 0 ? ", " : "") + names[i];
  }
  return names.size() > kShown ? text + ", ..." : text;
}

// Groups without a case that ran (in a quick run) leave their share to the others. A wrong result
// in a timed or memory case counts as one more failed core case.
Dimension correctness(const CaseTable& table) {
  const ChallengeSpec& spec = table.spec();
  const double max = spec.weights.correctness;
  if (auto why = table.missing(names_of(spec, in_correctness)); !why.empty()) {
    return not_run("correctness", max, std::move(why));
  }
  std::map<CaseGroup, Tally> groups;
  std::vector<std::string> failed;
  int ran = 0;
  for (const CaseSpec& c : spec.cases) {
    const CaseResult* r = table.ran(c.name);
    if (r != nullptr && is_wrong_at_size(*r)) {
      ++ran;
      groups[CaseGroup::core].add(1, 0);
      failed.push_back(c.name);
    }
    if (!in_correctness(c.group) || r == nullptr) continue;
    ++ran;
    groups[c.group].add(c.weight, table.passed(c.name) ? 1 : 0);
    if (!table.passed(c.name)) failed.push_back(c.name);
  }
  Tally all;
  for (const auto& [group, tally] : groups) {
    const auto share = spec.correctness_shares.find(group);
    if (tally.possible > 0 && share != spec.correctness_shares.end()) {
      all.add(share->second, tally.share());
    }
  }
  if (ran == 0) return not_run("correctness", max, "the challenge has no core, edge or trap case");
  auto why = fmt::format("{} of {} cases", ran - static_cast<int>(failed.size()), ran);
  return scored("correctness", max, all.share(), with_list(std::move(why), "failed", failed));
}

// The median over cases. A case that should have succeeded but failed counts as infinitely wrong,
// so that failing where accuracy is hard does not pay.
Dimension accuracy(const CaseTable& table) {
  const ChallengeSpec& spec = table.spec();
  const double max = spec.weights.accuracy;
  std::vector<std::string> names = names_of(spec, in_correctness);
  if (auto why = table.missing(names); !why.empty()) {
    return not_run("accuracy", max, std::move(why));
  }
  std::vector<double> errors;
  bool measured = false;
  for (const CaseSpec& c : spec.cases) {
    const CaseResult* r = table.ran(c.name);
    // Drawn cases are left out, so that the median is over the same inputs in every run.
    if (r == nullptr || c.expect_status != 0 || c.drawn) continue;
    const bool lacks = (r->verdict == Verdict::unsupported && !is_failure(*r)) ||
                       (r->verdict == Verdict::needs_gpu && c.group == CaseGroup::completeness);
    if (lacks && !table.failed()) continue;
    const bool ok = r->verdict == Verdict::ok;
    if (ok && !r->accuracy) continue;
    measured = measured || ok;
    errors.push_back(ok && !std::isnan(*r->accuracy) ? *r->accuracy : HUGE_VAL);
  }
  if (!measured) return scored("accuracy", max, 0, "no case with a measured accuracy passed");
  const double m = quantile(errors, 0.5);
  if (!std::isfinite(m)) return scored("accuracy", max, 0, "half of the cases or more failed");
  return scored(
      "accuracy", max, share_on_scale(m, spec.accuracy_full, spec.accuracy_zero),
      fmt::format("median error {:.3g} times that of plain fp32 over {} cases", m, errors.size()));
}

Dimension resources(const CaseTable& table) {
  const ChallengeSpec& spec = table.spec();
  const double max = spec.weights.resources;
  std::vector<std::string> names;
  for (const ResourceRule& rule : spec.resources) {
    names.insert(names.end(), rule.case_names.begin(), rule.case_names.end());
  }
  if (names.empty()) return not_run("resources", max, "the challenge bounds no resource");
  if (auto why = table.missing(names); !why.empty()) {
    return not_run("resources", max, std::move(why));
  }
  Tally tally;
  std::string why;
  for (const ResourceRule& rule : spec.resources) {
    const Measured measured = measure(rule, table);
    if (measured.values.empty()) continue;
    why += why.empty() ? "" : "; ";
    if (measured.failed.size() == measured.values.size()) {
      tally.add(rule.weight, 0);
      why += fmt::format("{}: {} failed", rule.name, some_of(measured.failed));
      continue;
    }
    const double value = quantile(measured.values, 0.5);
    const double share = share_on_scale(value, rule.full, rule.zero);
    tally.add(rule.weight, share);
    why += fmt::format("{} {} ({:.0f} %)", rule.name, amount_text(value, rule.unit), 100 * share);
    if (!measured.failed.empty()) why += fmt::format(", {} failed", some_of(measured.failed));
    if (!measured.hosted.empty())
      why += fmt::format(", {} computed on the host", some_of(measured.hosted));
    if (!measured.unreported.empty())
      why += fmt::format(", {} reported no {}", measured.unreported, rule.metric);
  }
  return scored("resources", max, tally.share(), why);
}

Dimension completeness(const CaseTable& table) {
  const ChallengeSpec& spec = table.spec();
  const double max = spec.weights.completeness;
  const auto is_completeness = [](CaseGroup g) { return g == CaseGroup::completeness; };
  const std::vector<std::string> names = names_of(spec, is_completeness);
  if (names.empty()) return not_run("completeness", max, "the challenge tests no capability");
  if (auto why = table.missing(names); !why.empty()) {
    return not_run("completeness", max, std::move(why));
  }
  Tally tally;
  std::vector<std::string> lacking;
  std::size_t tested = 0;
  for (const Capability& capability : spec.capabilities) {
    bool ran = false, works = true;
    for (const CaseSpec& c : spec.cases) {
      if (c.group != CaseGroup::completeness || c.capability != capability.name) continue;
      if (table.ran(c.name) == nullptr) continue;
      ran = true;
      works = works && table.passed(c.name);
    }
    if (!ran) continue;
    ++tested;
    tally.add(capability.weight, works ? 1 : 0);
    if (!works) lacking.push_back(capability.name);
  }
  auto why = fmt::format("{} of {} capabilities", tested - lacking.size(), tested);
  return scored("completeness", max, tally.share(), with_list(std::move(why), "lacks", lacking));
}

// A submission without its own tests earns nothing here, unless the harness did not run them.
Dimension tests(const CaseTable& table) {
  const CellResult& cell = table.cell();
  const double max = table.spec().weights.tests;
  if (table.quick() && cell.mutants.empty())
    return not_run("tests", max, "not run in a quick run");  // whether there are any or not
  if (cell.mutants.empty()) {
    const Note note = cell.tests_note.value_or(Note{Note::Kind::tests_not_run, "not run"});
    return note.kind == Note::Kind::no_tests ? scored("tests", max, 0, note.text)
                                             : not_run("tests", max, note.text);
  }
  std::vector<std::string> missed, told_apart, left_out;
  std::size_t wrong = 0, right = 0;
  std::string rejected;
  for (const Mutant& m : cell.mutants) {
    if (m.verdict == TestVerdict::not_run) {
      return not_run("tests", max, fmt::format("not run: {} ({})", m.subject, m.reason));
    }
    if (m.verdict == TestVerdict::house_fault) {
      left_out.push_back(m.subject);
      continue;
    }
    ++(m.correct ? right : wrong);
    if (m.judged_rightly()) continue;
    if (m.verdict == TestVerdict::inconsistent) told_apart.push_back(m.subject);
    if (!m.correct) {
      missed.push_back(m.subject);
    } else if (rejected.empty()) {
      rejected = fmt::format("{} ({}{}{})", m.subject, code(m.verdict),
                             m.reason.empty() ? "" : ": ", printable(m.reason, 1));
    }
  }
  if (!told_apart.empty()) {
    return scored(
        "tests", max, 0,
        fmt::format("its tests go by something else than behaviour: twins that do the same "
                    "are told apart: {}",
                    some_of(told_apart)));
  }
  if (!rejected.empty()) {
    return scored("tests", max, 0,
                  fmt::format("its tests do not accept a correct implementation: {}", rejected));
  }
  if (wrong == 0) return not_run("tests", max, "not run: no wrong example was tried");
  if (right == 0) {
    return not_run("tests", max,
                   with_list("not run: a fault of the house: no implementation is right where its "
                             "tests look",
                             "wrong", left_out));
  }
  auto why = fmt::format("its tests reject {} of {} wrong examples", wrong - missed.size(), wrong);
  const double share = static_cast<double>(wrong - missed.size()) / static_cast<double>(wrong);
  why = with_list(std::move(why), "missed", missed);
  return scored("tests", max, share,
                with_list(std::move(why), "they rightly reject, a fault of the house", left_out));
}

}  // namespace assay::grading
