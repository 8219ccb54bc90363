#include "cases/fuzz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <vector>

#include "assay/error.h"
#include "cases/fake_world.h"

namespace assay::cases {
namespace {

using nlohmann::json;
using testing::Answer;
using testing::ending;
using ::testing::HasSubstr;
using testing::wrong;

class FuzzTest : public ::testing::Test {
 protected:
  FuzzTest() {
    spec_.name = "copying";
    spec_.limits.memory_bytes = 1 << 20;
    spec_.random.emplace();
    spec_.random->axes = {{.name = "n", .choices = {json{{"from", 0}, {"to", 1000}}}}};
  }
  void answer(std::function<Answer(const CaseSpec&)> answers) {
    world_.libraries["a"].run_drawn = std::move(answers);
  }
  Fuzzer fuzzer() {
    processes::WorkerSettings settings;
    settings.spec = &spec_;
    settings.library = "a";
    return Fuzzer({bench_world_, world_.challenge, settings, 7, account_});
  }
  // An answer that asks for memory that many times.
  static Answer asking(std::uint64_t allocations) {
    return {.outcome = {.seconds = 0.001, .allocations = allocations}};
  }
  static Answer out_of_memory(std::uint64_t allocations) {
    Answer a = asking(allocations);
    a.outcome.status = ASSAY_ENOMEM;
    a.writes = false;
    return a;
  }

  testing::FakeWorld world_;
  World bench_world_ = world_.world();
  ChallengeSpec spec_;
  TimeAccount account_;
};

TEST_F(FuzzTest, FindsNothingInWhatIsRight) {
  Fuzzer fuzzer = this->fuzzer();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Fuzzer::Step step = fuzzer.step(seed);
    EXPECT_FALSE(step.failure);
    EXPECT_EQ(step.runs, 1);
  }
  EXPECT_EQ(world_.count("start a"), 1) << "one worker runs all draws";
}

TEST_F(FuzzTest, AFailureIsShrunkAndCanBeReplayed) {
  answer([](const CaseSpec& c) { return c.params.at("n") >= 17 ? wrong() : Answer(); });
  Fuzzer fuzzer = this->fuzzer();
  std::optional<Failure> failure;
  for (std::uint64_t seed = 0; !failure; ++seed) failure = fuzzer.step(seed).failure;
  EXPECT_EQ(failure->draw, (json{{"n", 17}}));
  EXPECT_EQ(fuzzer.replay(failure->draw, failure->result.seed).verdict, Verdict::wrong_answer);
  EXPECT_EQ(fuzzer.replay({{"n", 16}}, failure->result.seed).verdict, Verdict::ok);
}

TEST_F(FuzzTest, AFaultOfTheHarnessNamesTheDraw) {
  answer([](const CaseSpec&) -> Answer { throw std::bad_alloc(); });
  Fuzzer fuzzer = this->fuzzer();
  try {
    fuzzer.step(5);
    FAIL() << "the fault is lost";
  } catch (const Error& fault) {
    EXPECT_THAT(fault.what(), HasSubstr("out of memory, in the draw {\"n\":"));
    EXPECT_THAT(fault.what(), HasSubstr("with seed 5"));
  }
}

TEST_F(FuzzTest, EveryAllocationIsRefusedOnce) {
  std::vector<std::uint32_t> refused;
  answer([&](const CaseSpec& c) {
    refused.push_back(c.failing_allocation);
    return c.failing_allocation > 0 ? out_of_memory(c.failing_allocation) : asking(3);
  });
  const Fuzzer::Step step = fuzzer().step(1);
  EXPECT_FALSE(step.failure) << step.failure->result.detail;
  EXPECT_THAT(refused, ::testing::ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(step.refusals, 3);
}

TEST_F(FuzzTest, ARefusalMustLeaveNoTrace) {
  const auto finds = [&](Answer refused) {
    answer([refused](const CaseSpec& c) { return c.failing_allocation > 0 ? refused : asking(2); });
    const Fuzzer::Step step = fuzzer().step(1);
    return step.failure ? step.failure->result.detail : "";
  };
  Answer writes = out_of_memory(2);
  writes.writes = true;
  EXPECT_THAT(finds(writes), HasSubstr("y was changed all the same"));
  Answer leaks = out_of_memory(2);
  leaks.outcome.kept_blocks = 2;
  EXPECT_THAT(finds(leaks), HasSubstr("2 blocks of ctx->alloc were never freed"));
  Answer other = out_of_memory(2);
  other.outcome.status = ASSAY_EINTERNAL;
  EXPECT_THAT(finds(other), HasSubstr("ASSAY_EINTERNAL"));
  EXPECT_EQ(finds(out_of_memory(2)), "");
  EXPECT_EQ(finds(asking(2)), "") << "it does without";
  // Reports the second of two allocations as refused, which was never requested.
  answer([](const CaseSpec& c) {
    return c.failing_allocation > 1    ? out_of_memory(1)
           : c.failing_allocation == 1 ? out_of_memory(1)
                                       : asking(2);
  });
  EXPECT_THAT(fuzzer().step(1).failure->result.detail, HasSubstr("although no allocation"));
}

TEST_F(FuzzTest, TheRefusalIsPartOfTheDraw) {
  answer([](const CaseSpec& c) {
    return c.failing_allocation == 2 && c.params.at("n") >= 5 ? ending(Verdict::runtime_error)
           : c.failing_allocation > 0                         ? out_of_memory(2)
                                                              : asking(2);
  });
  Fuzzer fuzzer = this->fuzzer();
  std::optional<Failure> failure;
  for (std::uint64_t seed = 0; !failure; ++seed) failure = fuzzer.step(seed).failure;
  EXPECT_EQ(failure->draw, (json{{"failing_allocation", 2}, {"n", 5}}));
  EXPECT_EQ(fuzzer.replay(failure->draw, 3).verdict, Verdict::runtime_error);
}

TEST_F(FuzzTest, WhatACallLeavesBehindIsFound) {
  answer([](const CaseSpec&) {
    Answer a = asking(1);
    a.outcome.kept_blocks = 1;
    return a;
  });
  EXPECT_THAT(fuzzer().step(1).failure->result.detail, HasSubstr("1 blocks of ctx->alloc"));
}

TEST_F(FuzzTest, WhatIsNotSupportedIsNotTested) {
  answer([](const CaseSpec&) {
    Answer a;
    a.outcome.status = ASSAY_ENOTSUP;
    return a;
  });
  const Fuzzer::Step step = fuzzer().step(1);
  EXPECT_FALSE(step.failure);
  EXPECT_EQ(step.not_tested, 1);
}

}  // namespace
}  // namespace assay::cases
