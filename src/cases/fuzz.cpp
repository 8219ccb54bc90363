#include "cases/fuzz.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "assay/error.h"
#include "assay/random.h"
#include "assay/secret.h"
#include "cases/fault.h"
#include "records/lookup.h"

namespace assay::cases {
namespace {

CaseSpec placeholder_of(const RandomSpace& space) {
  CaseSpec c;
  c.name = "fuzz";
  c.group = CaseGroup::edge;
  c.time_limit_s = space.time_limit_s;
  c.instruction_limit = space.instruction_limit;
  c.repetitions = 1;
  c.drawn = true;
  return c;
}

// Picks the allocations to refuse, one per run: all of them, or a random few if there are many.
std::vector<std::uint64_t> positions(std::uint64_t allocations, std::uint64_t seed) {
  constexpr std::size_t kMost = 12;
  constexpr std::uint64_t kListed = 10'000;  // a worker may report any number
  std::vector<std::uint64_t> all(std::min(allocations, kListed));
  std::iota(all.begin(), all.end(), std::uint64_t{1});
  if (all.size() <= kMost) return all;
  Random random(derive(seed, "refused"));
  shuffle(all, random);
  all.resize(kMost);
  std::ranges::sort(all);
  return all;
}

}  // namespace

Fuzzer::Fuzzer(const Bench& bench)
    : bench_(bench), placeholder_(placeholder_of(*bench.spec().random)), runner_(bench, true) {}

Fuzzer::Step Fuzzer::step(std::uint64_t seed) {
  Step step;
  CaseSpec placeholder = placeholder_;
  placeholder.aligned = derive(seed, "aligned") % 2 == 0;
  const draw::Drawn drawn =
      draw::draw_case(bench_.challenge, *bench_.spec().random, placeholder, seed, true);
  try {
    search(drawn, seed, step);
  } catch (const std::exception& fault) {
    throw Error(
        fmt::format("{}, in the draw {} with seed {}", fault_text(fault), drawn.draw.dump(), seed));
  }
  return step;
}

void Fuzzer::search(const draw::Drawn& drawn, std::uint64_t seed, Step& step) {
  const CaseRunner::Ran ran = runner_.run(drawn.spec, seed);
  ++step.runs;
  if (ran.result.verdict == Verdict::unsupported) {
    ++step.not_tested;
  } else if (is_failure(ran.result)) {
    step.failure = Failure{drawn.draw, ran.result};
  } else if (drawn.spec.expect_status == 0 && drawn.spec.failing_allocation == 0) {
    refuse_allocations(drawn, ran.allocations, seed, step);
  }
  if (step.failure && can_shrink(step.failure->result.verdict))
    step.failure = smallest_failure(runner_, bench_, placeholder_, *std::move(step.failure));
}

void Fuzzer::refuse_allocations(const draw::Drawn& drawn, std::uint64_t allocations,
                                std::uint64_t seed, Step& step) {
  for (const std::uint64_t position : positions(allocations, seed)) {
    CaseSpec spec = drawn.spec;
    spec.failing_allocation = static_cast<std::uint32_t>(position);
    const CaseRunner::Ran ran = runner_.run(spec, seed);
    ++step.runs;
    ++step.refusals;
    if (!is_failure(ran.result)) continue;
    step.failure = Failure{drawn.draw, ran.result};
    step.failure->draw[draw::kFailingAllocation] = position;
    return;
  }
}

CaseResult Fuzzer::replay(const nlohmann::json& draw, std::uint64_t seed) {
  const auto spec = draw::case_of(bench_.challenge, *bench_.spec().random, placeholder_, draw);
  if (!spec) throw Error(fmt::format("{} is no case of {}", draw.dump(), bench_.spec().name));
  return runner_.run(*spec, seed).result;
}

}  // namespace assay::cases
