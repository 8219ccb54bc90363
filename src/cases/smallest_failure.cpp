#include "cases/smallest_failure.h"

#include <fmt/format.h>

#include <algorithm>

#include "draw/shrink.h"
#include "records/lookup.h"

namespace assay::cases {
namespace {

constexpr int kMostRuns = 200;      // for one failure
constexpr double kMostSeconds = 3;  // likewise
constexpr int kMostShrunk = 3;      // of one cell

}  // namespace

bool can_shrink(Verdict verdict) {
  return verdict == Verdict::wrong_answer || verdict == Verdict::runtime_error ||
         verdict == Verdict::device_error;
}

Failure smallest_failure(CaseRunner& runner, const Bench& bench, const CaseSpec& placeholder,
                         Failure failure) {
  const double end = bench.world.now() + kMostSeconds;
  const auto fails = [&](const nlohmann::json& draw) {
    if (bench.world.now() > end) return false;
    const auto spec = draw::case_of(bench.challenge, *bench.spec().random, placeholder, draw);
    if (!spec) return false;
    CaseResult result = runner.run(*spec, failure.result.seed).result;
    if (result.verdict != failure.result.verdict) return false;
    failure.result = std::move(result);
    return true;
  };
  failure.draw = draw::shrink(*bench.spec().random, std::move(failure.draw), fails, kMostRuns);
  return failure;
}

void shrink_failures(const Bench& bench, const std::deque<draw::Drawn>& drawn,
                     std::vector<CaseResult>& results) {
  std::optional<CaseRunner> runner;
  int left = kMostShrunk;
  for (CaseResult& result : results) {
    const auto it = std::ranges::find_if(
        drawn, [&](const draw::Drawn& d) { return d.spec.name == result.name; });
    if (it == drawn.end() || !is_failure(result)) continue;
    std::string how = fmt::format("; drawn: {}", it->draw.dump());
    if (can_shrink(result.verdict) && left-- > 0) {
      if (!runner) runner.emplace(bench, false);
      const CaseSpec& placeholder =
          *std::ranges::find(bench.spec().cases, result.name, &CaseSpec::name);
      const Failure smallest = smallest_failure(*runner, bench, placeholder, {it->draw, result});
      if (smallest.draw != it->draw) {
        how = fmt::format("; the simplest draw that fails: {}: {}", smallest.draw.dump(),
                          smallest.result.detail);
      }
    }
    result.detail += how;
  }
}

}  // namespace assay::cases
