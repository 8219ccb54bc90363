#include "session/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>

#include "util/transient_fault.h"

namespace assay::session {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Submission submission(const std::string& model, const std::string& challenge,
                      Language language = Language::cpp) {
  Submission s;
  s.model = model;
  s.challenge = challenge;
  s.language = language;
  return s;
}

std::vector<std::string> names(const std::vector<const Submission*>& submissions) {
  std::vector<std::string> result;
  for (const Submission* s : submissions) result.push_back(s->model + "/" + s->challenge);
  return result;
}

// --- order
// ------------------------------------------------------------------------------------------

// The models' names hold the expected seconds of their submissions.
double seconds(const Submission& s) { return std::stod(s.model); }

TEST(Order, TheShortestAnswerInCppComesFirstAlone) {
  const std::vector<Submission> all{submission("3", "a"), submission("1", "b"),
                                    submission("2", "a")};
  const Order order = plan_order(all, 2, seconds);
  ASSERT_NE(order.first, nullptr);
  EXPECT_EQ(order.first->model, "1");
  ASSERT_EQ(order.batches.size(), 1u);
  ASSERT_EQ(order.batches[0].size(), 1u);
  EXPECT_THAT(names(order.batches[0][0]), ElementsAre("3/a", "2/a"));
}

TEST(Order, LongSimulationsComeFirst) {
  const std::vector<Submission> all{submission("2", "a", Language::cuda), submission("1", "a"),
                                    submission("9", "a", Language::cuda),
                                    submission("inf", "b", Language::cuda)};
  EXPECT_THAT(names(plan_order(all, 2, seconds).simulated), ElementsAre("inf/b", "9/a", "2/a"));
}

TEST(Order, WithoutAnswersInCppTheShortestSimulationComesFirst) {
  const std::vector<Submission> all{submission("5", "a", Language::cuda),
                                    submission("2", "a", Language::cuda),
                                    submission("9", "a", Language::cuda)};
  const Order order = plan_order(all, 2, seconds);
  EXPECT_EQ(order.first, nullptr);
  EXPECT_THAT(names(order.simulated), ElementsAre("2/a", "9/a", "5/a"));
  EXPECT_THAT(order.batches, IsEmpty());
}

TEST(Order, AnswersOnARealGpuAreTimed) {
  std::vector<Submission> all{submission("3", "a", Language::cuda),
                              submission("1", "b", Language::cuda),
                              submission("2", "a", Language::cuda)};
  for (Submission& s : all) s.on_real_gpu = true;
  const Order order = plan_order(all, 2, seconds);
  EXPECT_THAT(order.simulated, IsEmpty());
  ASSERT_NE(order.first, nullptr);
  EXPECT_EQ(order.first->model, "1");
  ASSERT_EQ(order.batches.size(), 1u);
  EXPECT_THAT(names(order.batches[0][0]), ElementsAre("3/a", "2/a"));
}

TEST(Order, AtMostFourAreTimedTogetherAndOfOneChallenge) {
  std::vector<Submission> all{submission("0", "first")};
  for (int i = 1; i <= 6; ++i) all.push_back(submission(std::to_string(i), "b"));
  all.push_back(submission("7", "a"));
  const Order order = plan_order(all, 8, seconds);
  ASSERT_EQ(order.batches.size(), 1u);
  ASSERT_EQ(order.batches[0].size(), 3u);
  EXPECT_THAT(names(order.batches[0][0]), ElementsAre("7/a"));
  EXPECT_EQ(order.batches[0][1].size(), 4u);
  EXPECT_EQ(order.batches[0][2].size(), 2u);
}

TEST(Order, ABatchEndsWhenItKeepsAllCoresBusy) {
  std::vector<Submission> all{submission("0", "first")};
  for (const char* challenge : {"a", "b", "c"}) {
    for (int i = 1; i <= 3; ++i) all.push_back(submission(std::to_string(i), challenge));
  }
  const Order order = plan_order(all, 1, seconds);  // four are enough
  ASSERT_EQ(order.batches.size(), 2u);
  EXPECT_EQ(order.batches[0].size(), 2u);
  EXPECT_EQ(order.batches[1].size(), 1u);
}

TEST(Order, NothingToDoIsNoOrder) {
  const Order order = plan_order({}, 2, seconds);
  EXPECT_EQ(order.first, nullptr);
  EXPECT_THAT(order.simulated, IsEmpty());
  EXPECT_THAT(order.batches, IsEmpty());
}

// --- running
// ----------------------------------------------------------------------------------------

// Records the calls that it gets, and throws where it is told to.
class FakeSteps final : public Steps {
 public:
  std::vector<cells::SharedBuild> builds_for(const std::string& challenge,
                                             bool own_tests) override {
    if (broken_builds) throw std::runtime_error("cannot read " + challenge);
    std::vector<cells::SharedBuild> builds{{challenge + " naive", [this, challenge] {
                                              tell("build " + challenge);
                                              if (passing_builds) throw TransientFault("no pipe");
                                            }}};
    if (own_tests)
      builds.push_back(
          {challenge + " subject", [this, challenge] { tell("subject " + challenge); }});
    return builds;
  }
  std::size_t places() const override { return number_of_places; }
  CellResult check(const Submission& s, std::size_t place) override {
    const Busy busy(*this);
    tell("check " + s.model);
    {
      const std::lock_guard lock(mutex_);
      place_of[s.model] = place;
    }
    fail("check " + s.model);
    CellResult cell;
    cell.key = {s.model, s.challenge, s.attempt, s.device()};
    return cell;
  }
  void run_own_tests(const Submission& s, CellResult&, std::size_t) override {
    const Busy busy(*this);
    tell("tests " + s.model);
    fail("tests " + s.model);
  }
  void time_together(std::span<CellResult> cells, std::size_t place) override {
    std::string text = "time";
    for (const CellResult& cell : cells) text += " " + cell.key.model;
    tell(text);
    EXPECT_EQ(busy_, 0) << "timing is alone";
    const Timing timing(*this, place, cells);
    if (meeting) meeting(text);
    fail(text);
  }
  void run_exclusive(CellResult& cell, std::size_t place) override {
    tell("exclusive " + cell.key.model);
    EXPECT_EQ(busy_, 0) << "exclusive cases are alone";
    const Timing timing(*this, place, std::span(&cell, 1));
    fail("exclusive " + cell.key.model);
  }

  std::vector<std::string> log;
  std::set<std::string> faults;
  bool broken_builds = false, passing_builds = false;
  std::size_t number_of_places = 1;
  std::map<std::string, std::size_t> place_of;           // where each model was checked
  std::function<void(const std::string& step)> meeting;  // called while a group is timed

 private:
  // Only one group is timed at a place, and only where it was checked.
  struct Timing {
    Timing(FakeSteps& steps, std::size_t place, std::span<const CellResult> cells)
        : steps(steps), place(place) {
      const std::lock_guard lock(steps.mutex_);
      EXPECT_TRUE(steps.timing_at_.insert(place).second) << "at place " << place;
      for (const CellResult& cell : cells) {
        const auto checked = steps.place_of.find(cell.key.model);
        EXPECT_TRUE(checked != steps.place_of.end() && checked->second == place) << cell.key.model;
      }
    }
    ~Timing() {
      const std::lock_guard lock(steps.mutex_);
      steps.timing_at_.erase(place);
    }
    FakeSteps& steps;
    std::size_t place;
  };
  struct Busy {
    explicit Busy(FakeSteps& steps) : steps(steps) { ++steps.busy_; }
    ~Busy() { --steps.busy_; }
    FakeSteps& steps;
  };
  void tell(const std::string& what) {
    const std::lock_guard lock(mutex_);
    log.push_back(what);
  }
  void fail(const std::string& step) const {
    if (faults.contains(step)) throw std::runtime_error("fault of " + step);
  }

  std::mutex mutex_;
  std::set<std::size_t> timing_at_;
  std::atomic<int> busy_{0};
};

class SessionTest : public ::testing::Test {
 protected:
  void run(std::size_t jobs = 2) {
    const Order order = plan_order(submissions_, jobs, seconds);
    session::run(
        order, jobs, steps_,
        [this](CellResult cell, std::size_t place) {
          if (cell.key.model == refused_) throw std::runtime_error("the disk is full");
          measured_at_[cell.key.model] = place;
          finished_.push_back(std::move(cell));
        },
        [this](const std::string& activity) {
          const std::lock_guard lock(mutex_);
          ++going_on_[activity];
          return Activity(nullptr, [this, activity](void*) {
            const std::lock_guard lock_again(mutex_);
            --going_on_[activity];
          });
        });
  }
  std::vector<std::string> finished() const {
    std::vector<std::string> models;
    for (const CellResult& cell : finished_) models.push_back(cell.key.model);
    return models;
  }
  const CellResult& cell_of(const std::string& model) const {
    for (const CellResult& cell : finished_) {
      if (cell.key.model == model) return cell;
    }
    throw std::out_of_range(model);
  }
  std::size_t at(const std::string& entry) const {
    return static_cast<std::size_t>(std::ranges::find(steps_.log, entry) - steps_.log.begin());
  }

  // 1 comes first; 2 and 3 are timed together; 4 and 5 are simulated.
  std::vector<Submission> submissions_{submission("1", "a"), submission("2", "b"),
                                       submission("3", "b"), submission("4", "a", Language::cuda),
                                       submission("5", "b", Language::cuda)};
  FakeSteps steps_;
  std::vector<CellResult> finished_;
  std::map<std::string, std::size_t> measured_at_;
  std::map<std::string, int> going_on_;
  std::mutex mutex_;
  std::string refused_;
};

TEST_F(SessionTest, EveryCellReachesTheSinkOnceAndTheFirstFirst) {
  for (const std::size_t jobs : {1u, 2u, 8u}) {
    finished_.clear();
    run(jobs);
    EXPECT_EQ(finished().front(), "1");
    EXPECT_THAT(finished(), UnorderedElementsAre("1", "2", "3", "4", "5")) << jobs;
  }
}

TEST_F(SessionTest, OneAfterTheOtherInTheOrderPlanned) {
  run(1);
  EXPECT_THAT(steps_.log, ElementsAre("check 1", "build a", "tests 1", "time 1", "exclusive 1",  //
                                      "check 5", "tests 5", "check 4", "tests 4",                //
                                      "check 2", "check 3", "build b", "tests 2", "tests 3",
                                      "time 2 3", "exclusive 2", "exclusive 3"));
  EXPECT_THAT(finished(), ElementsAre("1", "5", "4", "2", "3"));
}

TEST_F(SessionTest, WhatAChallengeNeedsIsBuiltWhenItsTurnComesAndOnce) {
  submissions_.push_back(submission("6", "a"));
  run();
  EXPECT_LT(at("time 1"), at("build b")) << "the first result does not wait for others' builds";
  EXPECT_EQ(std::ranges::count(steps_.log, "build a"), 1);
}

TEST_F(SessionTest, SubjectsAreBuiltOnlyForThoseThatShipTests) {
  submissions_[1].test_source = "the tests";
  run();
  EXPECT_EQ(std::ranges::count(steps_.log, "subject b"), 1);
  EXPECT_EQ(std::ranges::count(steps_.log, "subject a"), 0);
  EXPECT_LT(at("subject b"), at("tests 2"));
}

TEST_F(SessionTest, AFaultInAnyStepEndsItsCellAlone) {
  for (const char* step : {"check 2", "tests 2", "exclusive 2"}) {
    finished_.clear();
    steps_.faults = {step};
    run();
    EXPECT_THAT(finished(), UnorderedElementsAre("1", "2", "3", "4", "5")) << step;
    EXPECT_EQ(cell_of("2").build.verdict, Verdict::harness_error) << step;
    EXPECT_EQ(cell_of("2").build.log, std::string("fault of ") + step);
    EXPECT_EQ(cell_of("2").key.challenge, "b") << step;
    EXPECT_EQ(cell_of("3").build.verdict, Verdict::ok) << step;
  }
}

TEST_F(SessionTest, AFaultInASimulationEndsItsCellAlone) {
  steps_.faults = {"check 4"};
  run();
  EXPECT_EQ(cell_of("4").build.verdict, Verdict::harness_error);
  EXPECT_EQ(cell_of("4").key.device, Device::sim);
  EXPECT_EQ(cell_of("5").build.verdict, Verdict::ok);
}

TEST_F(SessionTest, AFaultInTimingEndsThoseWhoWereTimedTogether) {
  steps_.faults = {"time 2 3"};
  run();
  EXPECT_THAT(finished(), UnorderedElementsAre("1", "2", "3", "4", "5"));
  EXPECT_EQ(cell_of("2").build.verdict, Verdict::harness_error);
  EXPECT_EQ(cell_of("3").build.verdict, Verdict::harness_error);
  EXPECT_EQ(cell_of("1").build.verdict, Verdict::ok);
}

TEST_F(SessionTest, ABuildThatCannotBeMadeIsLeftToThoseWhoNeedIt) {
  steps_.broken_builds = true;
  run();
  EXPECT_EQ(finished().size(), 5u);
}

TEST_F(SessionTest, ABuildAheadThatMeetsAFaultThatCanPassIsToldByThoseWhoNeedIt) {
  steps_.passing_builds = true;
  run();
  for (const char* model : {"2", "3"}) {
    EXPECT_EQ(cell_of(model).build.verdict, Verdict::ok);
    EXPECT_THAT(cell_of(model).faults, ElementsAre("while building b naive: no pipe"));
  }
  EXPECT_THAT(cell_of("1").faults, ElementsAre("while building a naive: no pipe"));
  EXPECT_THAT(cell_of("5").faults, IsEmpty()) << "it needs no build";
}

TEST_F(SessionTest, ASinkThatThrowsEndsTheRunAndKeepsWhatItTook) {
  refused_ = "5";
  EXPECT_THROW(run(1), std::runtime_error);
  EXPECT_THAT(finished(), ElementsAre("1"));
  finished_.clear();
  refused_ = "2";
  EXPECT_THROW(run(2), std::runtime_error);
  EXPECT_THAT(finished(), UnorderedElementsAre("1", "5", "4"));
}

TEST_F(SessionTest, GroupsAreTimedSideBySideWhereThereAreSeveralPlaces) {
  submissions_ = {submission("1", "a"), submission("2", "a"), submission("3", "b"),
                  submission("4", "c"), submission("5", "d"), submission("6", "d")};
  steps_.number_of_places = 2;
  std::latch both(2);
  steps_.meeting = [&](const std::string& step) {
    if (step == "time 2" || step == "time 3") both.arrive_and_wait();
  };
  run();
  EXPECT_THAT(finished(), UnorderedElementsAre("1", "2", "3", "4", "5", "6"));
  EXPECT_THAT(measured_at_, ElementsAre(Pair("1", 0u), Pair("2", 0u), Pair("3", 1u), Pair("4", 0u),
                                        Pair("5", 1u), Pair("6", 1u)));
  EXPECT_EQ(measured_at_, steps_.place_of);
}

TEST_F(SessionTest, AFaultAtOnePlaceLeavesTheOthersAlone) {
  submissions_ = {submission("1", "a"), submission("2", "a"), submission("3", "b"),
                  submission("4", "c")};
  steps_.number_of_places = 2;
  steps_.faults = {"time 2"};
  run();
  EXPECT_THAT(finished(), UnorderedElementsAre("1", "2", "3", "4"));
  EXPECT_EQ(cell_of("2").build.verdict, Verdict::harness_error);
  EXPECT_EQ(cell_of("3").build.verdict, Verdict::ok);
  EXPECT_EQ(cell_of("4").build.verdict, Verdict::ok) << "at the same place, after it";
}

TEST_F(SessionTest, TheWatcherIsToldOfEachActivityAndOfItsEnd) {
  steps_.faults = {"check 4", "time 2 3"};
  run();
  for (const char* activity : {"checking 1/a", "building a naive", "trying the tests of 1/a",
                               "timing 1/a", "checking 4/a (sim)", "timing 2 answers to b"}) {
    EXPECT_EQ(going_on_.count(activity), 1u) << activity;
  }
  for (const auto& [activity, n] : going_on_) EXPECT_EQ(n, 0) << activity;
}

}  // namespace
}  // namespace assay::session
