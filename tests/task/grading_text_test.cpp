#include "task/grading_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/bare_challenge.h"
#include "support/paths.h"

namespace assay::task {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Defines only what a prompt needs from a challenge.
class Shapes final : public BareChallenge {
 public:
  std::string shape(const CaseSpec& c) const override { return "shape of " + c.name; }
};

CaseSpec a_case(const std::string& name, CaseGroup group) {
  CaseSpec c;
  c.name = name;
  c.group = group;
  return c;
}

ResourceRule a_rule(double full, double zero, const std::string& unit, double weight) {
  ResourceRule rule;
  rule.name = "scratch";
  rule.case_names = {"memory"};
  rule.full = full;
  rule.zero = zero;
  rule.unit = unit;
  rule.weight = weight;
  rule.why = "tiles are enough";
  return rule;
}

ChallengeSpec a_spec() {
  ChallengeSpec spec;
  spec.correctness_shares = {
      {CaseGroup::core, 0.3}, {CaseGroup::edge, 0.2}, {CaseGroup::trap, 0.5}};
  spec.cases = {a_case("memory", CaseGroup::resource), a_case("fast", CaseGroup::timed),
                a_case("faster", CaseGroup::timed)};
  spec.resources = {a_rule(160 * 1024, 2'700'000, "B", 3), a_rule(0.55, 0, "", 1)};
  spec.capabilities = {{"bf16", "bfloat16 inputs", 1}, {"window", "sliding windows", 3}};
  return spec;
}

TEST(GradingTextTest, EveryPartHasItsPointsAndNoneIsInvented) {
  ChallengeSpec spec = a_spec();
  spec.weights.accuracy = 0;
  const std::string text = grading_text(spec, Shapes(), Language::cpp);
  EXPECT_THAT(text, HasSubstr("| correctness | 50 | ordinary cases 30 %, edge cases 20 %"));
  EXPECT_THAT(text, HasSubstr("So does a crash, a forbidden act or a wrong output in a case"));
  EXPECT_THAT(text, HasSubstr("| performance | 20 | 2 large shapes"));
  EXPECT_THAT(text, Not(HasSubstr("accuracy")));
}

TEST(GradingTextTest, QuantitiesHaveTheirBoundsShapesAndWeights) {
  const std::string text = grading_text(a_spec(), Shapes(), Language::cpp);
  EXPECT_THAT(text, HasSubstr("- scratch: up to 160 KiB earns all, 2,700,000 B nothing; tiles are "
                              "enough. Measured with shape of memory. 75 % of this part.\n"));
  EXPECT_THAT(text, HasSubstr("- scratch: from 0.55 earns all, 0 nothing"));
  EXPECT_THAT(text, HasSubstr("- `window`: sliding windows. 75 % of this part.\n"));
}

TEST(GradingTextTest, CudaIsModelledAndItsOwnTestsNeedWrongExamples) {
  const std::string text = grading_text(a_spec(), Shapes(), Language::cuda);
  EXPECT_THAT(text, HasSubstr("modelled for an H200"));
  EXPECT_THAT(text, HasSubstr("So does a crash, an error on the device, a forbidden act"));
  EXPECT_THAT(text, HasSubstr("| tests | 5 | not graded"));
  ChallengeSpec with_examples = a_spec();
  with_examples.directory = testing::source_dir() + "/challenges/layer_norm_backward";
  EXPECT_THAT(grading_text(with_examples, Shapes(), Language::cuda),
              HasSubstr("| tests | 5 | your own tests |"));
}

}  // namespace
}  // namespace assay::task
