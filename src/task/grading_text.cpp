#include "task/grading_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cells/run_options.h"
#include "spec/spec.h"
#include "spec/tests_in_cuda.h"
#include "util/text.h"

namespace assay::task {
namespace {

double share(const ChallengeSpec& spec, CaseGroup group) {
  const auto at = spec.correctness_shares.find(group);
  return at == spec.correctness_shares.end() ? 0 : 100 * at->second;
}

std::string correctness_text(const ChallengeSpec& spec, Language language) {
  return fmt::format(
      "ordinary cases {:.0f} %, edge cases {:.0f} %, cases on which known mistakes show {:.0f} %. "
      "A failed ordinary case caps the total at 59. So does a crash, {}a forbidden act or a wrong "
      "output in a case that measures speed or memory, which then counts as an ordinary case that "
      "failed",
      share(spec, CaseGroup::core), share(spec, CaseGroup::edge), share(spec, CaseGroup::trap),
      language == Language::cuda ? "an error on the device, " : "");
}

std::string accuracy_text(const ChallengeSpec& spec) {
  return fmt::format(
      "the error over that of a plain fp32 implementation, median of the cases: {:g} and less "
      "earns all, {:g} and more nothing",
      spec.accuracy_full, spec.accuracy_zero);
}

std::string performance_text(const ChallengeSpec& spec, Language language) {
  const auto shapes = std::ranges::count(spec.cases, CaseGroup::timed, &CaseSpec::group);
  if (language == Language::cuda) {
    return fmt::format(
        "{} shapes, the time modelled for an H200 from what the kernels do, on a logarithmic scale "
        "from a plain kernel (nothing), over an expert's where there is one (85 %, or more where "
        "that is near the end), to the least that the problem needs at all (all)",
        shapes);
  }
  return fmt::format(
      "{} large shapes with cold caches and {} threads, on a logarithmic scale from a plain "
      "implementation (nothing) over an expert's (85 %, or more where that is near the end), both "
      "timed beside the answer, to the least time that the machine needs at all (everything)",
      shapes, spec.limits.threads);
}

// "164 KiB", "2,700,000 B", "1.35"
std::string amount(double value, const std::string& unit) {
  if (unit != "B" || value != std::floor(value)) {
    return fmt::format("{:g}{}{}", value, unit.empty() ? "" : " ", unit);
  }
  auto n = static_cast<std::int64_t>(value);
  if (n > 0 && n % (std::int64_t{1} << 20) == 0) return fmt::format("{} MiB", n >> 20);
  if (n > 0 && n % 1024 == 0) return fmt::format("{} KiB", n >> 10);
  std::string digits = std::to_string(n);
  for (auto at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits + " B";
}

std::string resource_text(const ChallengeSpec& spec, const Challenge& challenge,
                          const ResourceRule& rule) {
  std::string where;
  if (const CaseSpec* const c = find_case(spec, rule.case_names.front()); c != nullptr)
    where = fmt::format(" Measured with {}.", challenge.shape(*c));
  return fmt::format("- {}: {} {} earns all, {} nothing; {}.{}\n", rule.name,
                     rule.full < rule.zero ? "up to" : "from", amount(rule.full, rule.unit),
                     amount(rule.zero, rule.unit), rule.why, where);
}

double sum_of_weights(const auto& items) {
  double sum = 0;
  for (const auto& item : items) sum += item.weight;
  return sum;
}

void add_row(std::string& text, const char* name, double points, const std::string& what) {
  if (points > 0) text += fmt::format("| {} | {} | {} |\n", name, tenths(points), what);
}

}  // namespace

std::string grading_text(const ChallengeSpec& spec, const Challenge& challenge, Language language) {
  const Weights& w = spec.weights;
  std::string text = "## Grading\n\n| part | points | what earns them |\n|---|---|---|\n";
  add_row(text, "correctness", w.correctness, correctness_text(spec, language));
  add_row(text, "accuracy", w.accuracy, accuracy_text(spec));
  add_row(text, "performance", w.performance, performance_text(spec, language));
  add_row(text, "resources", w.resources, "the quantities below");
  add_row(text, "completeness", w.completeness, "the capabilities below");
  const bool tries_tests = language == Language::cpp || has_tests_in_cuda(spec);
  add_row(text, "tests", w.tests,
          tries_tests ? "your own tests"
                      : "not graded: the points go to the other parts in proportion");
  const double resources = sum_of_weights(spec.resources);
  if (!spec.resources.empty()) text += "\nResources:\n\n";
  for (const ResourceRule& rule : spec.resources) {
    text += resource_text(spec, challenge, rule);
    if (spec.resources.size() > 1) {
      text.pop_back();
      text += fmt::format(" {:.0f} % of this part.\n", 100 * rule.weight / resources);
    }
  }
  const double capabilities = sum_of_weights(spec.capabilities);
  if (!spec.capabilities.empty())
    text += "\nCapabilities, all optional; each works only if all that is asked of it does:\n\n";
  for (const Capability& c : spec.capabilities) {
    text += fmt::format("- `{}`: {}. {:.0f} % of this part.\n", c.name, c.summary,
                        100 * c.weight / capabilities);
  }
  text += fmt::format(
      "\nLimits: {} MiB of memory beside inputs and outputs, {:.0f} s to compile, {:.0f} s to "
      "load, "
      "and per call far more time than a plain implementation needs.\n",
      spec.limits.memory_bytes >> 20, cells::build_limit(spec, language), spec.limits.load_time_s);
  return text;
}

}  // namespace assay::task
