#include "cases/exclusive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cases/fake_world.h"
#include "measure/machine.h"
#include "records/lookup.h"
#include "support/error_of.h"

namespace assay::cases {
namespace {

using testing::case_spec;
using ::testing::HasSubstr;
using testing::taking;

CaseSpec paced_case(const std::string& name) {
  CaseSpec c = case_spec(name);
  c.exclusive = true;
  c.params = {{"seconds", 10.0}};
  c.pace = {.of = "time", .times = 100};
  c.time_limit_s = 20;
  return c;
}

class ExclusiveTest : public ::testing::Test {
 protected:
  ExclusiveTest() {
    fake_.libraries["par"].run = [](const std::string&, int) { return taking(0.02); };
  }
  std::vector<CaseResult> run(const std::vector<std::string>& names,
                              const std::vector<CaseResult>& timed = {}) {
    std::vector<const CaseSpec*> cases;
    for (const std::string& name : names)
      cases.push_back(&*std::ranges::find(spec_.cases, name, &CaseSpec::name));
    const World world = fake_.world();
    processes::WorkerSettings settings;
    settings.spec = &spec_;
    settings.library = "answer";
    return run_exclusive({world, fake_.challenge, settings, 7, account_}, cases, timed, [this] {
      ++asked_for_par_;
      return std::filesystem::path("par");
    });
  }
  static double budget(const CaseResult& result) {
    return *find_metric(result.metrics, "budget_s");
  }
  // The timed case that sets the pace: par's seconds and the answer's own.
  static CaseResult timed(double par, double own, Verdict verdict = Verdict::ok) {
    CaseResult result;
    result.name = "time";
    result.verdict = verdict;
    result.samples = {{.naive = 1.0, .par = par, .submission = own}};
    return result;
  }

  testing::FakeWorld fake_;
  ChallengeSpec spec_ =
      testing::spec_with({case_spec("plain"), paced_case("train"), paced_case("again"),
                          case_spec("time", CaseGroup::timed)});
  TimeAccount account_;
  int asked_for_par_ = 0;
};

TEST_F(ExclusiveTest, EachCaseRunsAloneInTheOrderGiven) {
  spec_.cases[0].exclusive = true;
  const auto results = run({"train", "plain"});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].name, "train");
  EXPECT_EQ(results[1].name, "plain");
  EXPECT_EQ(fake_.entries("run answer"),
            (std::vector<std::string>{"run answer train", "run answer plain"}));
  for (const CaseResult& result : results)
    EXPECT_NE(find_metric(result.metrics, kStolenShare), nullptr);
}

TEST_F(ExclusiveTest, OneParSetsThePaceOfAllThatShareIt) {
  const auto results = run({"train", "again"});
  EXPECT_EQ(asked_for_par_, 1);
  EXPECT_EQ(fake_.count("run par time"), 1);
  EXPECT_DOUBLE_EQ(budget(results[0]), 2);  // 100 times 0.02 s
  EXPECT_DOUBLE_EQ(budget(results[1]), 2);
}

TEST_F(ExclusiveTest, WithoutAPaceParIsNotAskedFor) {
  spec_.cases[0].exclusive = true;
  const auto results = run({"plain"});
  EXPECT_EQ(asked_for_par_, 0);
  EXPECT_EQ(find_metric(results[0].metrics, "budget_s"), nullptr);
}

TEST_F(ExclusiveTest, WhoWasTimedHasAQuarterAtItsOwnPaceAndNeverMoreThanParsAllows) {
  EXPECT_DOUBLE_EQ(budget(run({"train"}, {timed(0.1, 0.1)}).at(0)), 0.5);
  EXPECT_DOUBLE_EQ(budget(run({"train"}, {timed(0.1, 0.2)}).at(0)), 1);
  EXPECT_DOUBLE_EQ(budget(run({"train"}, {timed(0.1, 5)}).at(0)), 2);
  EXPECT_DOUBLE_EQ(budget(run({"train"}, {timed(0.1, 0.1, Verdict::wrong_answer)}).at(0)), 2)
      << "what it failed says nothing of its pace";
}

TEST_F(ExclusiveTest, AParThatFailsIsTheHarnesssFault) {
  fake_.libraries["par"].run = [](const std::string&, int) {
    return testing::ending(Verdict::runtime_error);
  };
  EXPECT_THAT(assay::testing::error_of([&] { run({"train"}); }),
              HasSubstr("the par implementation failed the case time, which sets a pace"));
}

}  // namespace
}  // namespace assay::cases
