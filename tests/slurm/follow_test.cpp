#include "slurm/follow.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "assay/error.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace assay::slurm {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The states of a task, one per look; the last stays. "done" also leaves its mark.
using Life = std::vector<std::string>;

class Scripted final : public Scheduler {
 public:
  explicit Scripted(const ArrayFolder& folder) : folder_(folder) {}

  std::string submit(const Batch& batch) override {
    if (before_submit) before_submit();
    if (refuses && refuses(batch)) throw Refused("sbatch refused the job: no such nodes");
    batches.push_back(batch);
    return std::to_string(batches.size());
  }

  std::optional<std::string> job_named(const std::string& name) override {
    if (silent_names_for > 0) {
      --silent_names_for;
      throw Silent("squeue did not end within 120 s");
    }
    const auto found = named.find(name);
    return found == named.end() ? std::nullopt : std::optional(found->second);
  }

  Tasks look(const std::vector<std::string>& jobs) override {
    if (silent_for > 0) {
      --silent_for;
      throw Silent("squeue failed: cannot contact the controller");
    }
    Tasks tasks;
    for (auto& [task, life] : lives) {
      if (std::ranges::find(jobs, task.job) == jobs.end()) continue;
      const std::string now = life.front();
      if (life.size() > 1) life.erase(life.begin());
      if (now == "forgotten") continue;
      if (now == "done") {
        write_file_atomically(
            folder_.marks() / (std::to_string(task.shard) + "." + task.job + ".ended"), "0\n");
      }
      tasks[task] = {now == "done" ? "COMPLETED" : now, "node" + task.job};
    }
    return tasks;
  }

  void cancel(const std::vector<std::string>& jobs) override {
    if (cancels_badly) throw Refused("scancel failed");
    cancelled = jobs;
  }

  std::map<TaskId, Life> lives;
  std::map<std::string, std::string> named;
  std::function<bool(const Batch&)> refuses;
  std::function<void()> before_submit;
  int silent_for = 0, silent_names_for = 0;
  bool cancels_badly = false;
  std::vector<Batch> batches;
  std::vector<std::string> cancelled;

 private:
  const ArrayFolder& folder_;
};

class Follow : public ::testing::Test {
 protected:
  Follow() {
    fs::create_directories(folder.marks());
    array.id = "a";
    array.shards = 2;
  }

  std::vector<std::size_t> follow(std::size_t resubmit = 1) {
    Follower follower(array, folder, scheduler, {.resubmit = resubmit},
                      {.seconds = [this] { return now; },
                       .wait =
                           [this](double seconds) {
                             now += seconds;
                             waits.push_back(seconds);
                             if (waits.size() > 500) throw Error("it never ends");
                           },
                       .looked = [this](const Count& c) { counts.push_back(c); },
                       .done = [this](std::size_t shard) { done.push_back(shard); },
                       .say = [this](const std::string& line) { said.push_back(line); }});
    return follower.follow();
  }

  testing::TemporaryFolder temporary;
  ArrayFolder folder{temporary.path};
  Array array;
  Scripted scheduler{folder};
  double now = 0;
  std::vector<double> waits;
  std::vector<Count> counts;
  std::vector<std::size_t> done;
  std::vector<std::string> said;
};

TEST_F(Follow, SubmitsAllAndEndsWhenAllAreDone) {
  scheduler.lives = {{{"1", 1}, {"PENDING", "RUNNING", "done"}}, {{"1", 2}, {"RUNNING", "done"}}};
  EXPECT_THAT(follow(), IsEmpty());
  ASSERT_THAT(scheduler.batches, SizeIs(1));
  EXPECT_THAT(scheduler.batches[0].shards, ElementsAre(1, 2));
  EXPECT_THAT(done, ElementsAre(2, 1));
  EXPECT_EQ(counts.front(), (Count{.waiting = 2}));
  EXPECT_EQ(counts.back(), (Count{.done = 2}));
}

TEST_F(Follow, SubmitsAFailedShardAgainElsewhere) {
  scheduler.lives = {
      {{"1", 1}, {"RUNNING", "NODE_FAIL"}}, {{"1", 2}, {"done"}}, {{"2", 1}, {"PENDING", "done"}}};
  EXPECT_THAT(follow(), IsEmpty());
  ASSERT_THAT(scheduler.batches, SizeIs(2));
  EXPECT_THAT(scheduler.batches[1].shards, ElementsAre(1));
  EXPECT_THAT(scheduler.batches[1].excluded, ElementsAre("node1"));
  EXPECT_THAT(said, Contains(HasSubstr("shard 1 failed on node1: NODE_FAIL")));
}

TEST_F(Follow, DoesNotBlameTheNodeOfATimeout) {
  scheduler.lives = {{{"1", 1}, {"TIMEOUT"}}, {{"1", 2}, {"done"}}, {{"2", 1}, {"done"}}};
  EXPECT_THAT(follow(), IsEmpty());
  EXPECT_THAT(scheduler.batches[1].excluded, IsEmpty());
}

TEST_F(Follow, GivesUpOnAShardThatFailsTooOften) {
  scheduler.lives = {{{"1", 1}, {"FAILED"}}, {{"1", 2}, {"done"}}, {{"2", 1}, {"FAILED"}}};
  EXPECT_THAT(follow(), ElementsAre(1));
  EXPECT_THAT(scheduler.batches, SizeIs(2));
  // Asking again retries the shard.
  scheduler.lives[{"3", 1}] = {"done"};
  EXPECT_THAT(follow(), IsEmpty());
}

TEST_F(Follow, WithoutResubmissionsTheFirstFailureCounts) {
  scheduler.lives = {{{"1", 1}, {"FAILED"}}, {{"1", 2}, {"done"}}};
  EXPECT_THAT(follow(0), ElementsAre(1));
  EXPECT_THAT(scheduler.batches, SizeIs(1));
}

TEST_F(Follow, LeavesAShardAloneThatAPersonCancelled) {
  scheduler.lives = {{{"1", 1}, {"CANCELLED"}}, {{"1", 2}, {"done"}}};
  EXPECT_THAT(follow(5), ElementsAre(1));
  EXPECT_THAT(scheduler.batches, SizeIs(1));
}

TEST_F(Follow, NeverTakesSilenceForTheEndOfATask) {
  scheduler.lives = {{{"1", 1}, {"RUNNING", "done"}}, {{"1", 2}, {"RUNNING", "done"}}};
  scheduler.silent_for = 100;
  EXPECT_THAT(follow(), IsEmpty());
  EXPECT_THAT(scheduler.batches, SizeIs(1));
  EXPECT_EQ(
      std::ranges::count_if(said, [](const auto& s) { return s.find("asking again") != s.npos; }),
      1);
}

TEST_F(Follow, WaitsForALateMarkAndThenTakesTheShardForLost) {
  scheduler.lives = {{{"1", 1}, {"RUNNING", "forgotten"}},
                     {{"1", 2}, {"RUNNING", "COMPLETED", "COMPLETED", "done"}},
                     {{"2", 1}, {"done"}}};
  EXPECT_THAT(follow(), IsEmpty());
  ASSERT_THAT(scheduler.batches, SizeIs(2));
  EXPECT_THAT(scheduler.batches[1].shards, ElementsAre(1));
  EXPECT_GE(now, 90);
}

TEST_F(Follow, AsksLessOftenAsLongAsNothingHappens) {
  Life life(40, "RUNNING");
  life.push_back("done");
  scheduler.lives = {{{"1", 1}, life}, {{"1", 2}, {"done"}}};
  follow();
  EXPECT_EQ(waits.front(), 2);
  EXPECT_EQ(*std::ranges::max_element(waits), 60);
}

TEST_F(Follow, NotesEachStepBeforeTheNext) {
  scheduler.before_submit = [&] {
    const Array noted = folder.read();
    ASSERT_THAT(noted.batches, SizeIs(1));
    EXPECT_EQ(noted.batches[0].job, "");
    EXPECT_EQ(noted.batches[0].name, "assay-a-1");
  };
  scheduler.lives = {{{"1", 1}, {"done"}}, {{"1", 2}, {"done"}}};
  follow();
  EXPECT_EQ(folder.read().batches[0].job, "1");
  EXPECT_THAT(folder.read().done, ElementsAre(1, 2));
}

TEST_F(Follow, FindsAJobThatWasSubmittedAndNotNoted) {
  array.batches = {{"assay-a-1", "", {1, 2}, {}}};
  scheduler.named["assay-a-1"] = "77";
  scheduler.lives = {{{"77", 1}, {"done"}}, {{"77", 2}, {"done"}}};
  EXPECT_THAT(follow(), IsEmpty());
  EXPECT_THAT(scheduler.batches, IsEmpty());
}

TEST_F(Follow, FindsAJobThatWasSubmittedAgainAndNotNoted) {
  array.batches = {{"assay-a-1", "5", {1, 2}, {}}, {"assay-a-2", "", {1}, {}}};
  array.failures = {{{"5", 1}, "NODE_FAIL", "node5", true}};
  scheduler.named["assay-a-2"] = "77";
  scheduler.lives = {{{"77", 1}, {"done"}}, {{"5", 2}, {"done"}}};
  EXPECT_THAT(follow(), IsEmpty());
  EXPECT_THAT(scheduler.batches, IsEmpty());
}

TEST_F(Follow, WaitsForAnAnswerBeforeItSubmitsAgain) {
  array.batches = {{"assay-a-1", "", {1, 2}, {}}};
  scheduler.silent_names_for = 3;
  scheduler.named["assay-a-1"] = "77";
  scheduler.lives = {{{"77", 1}, {"done"}}, {{"77", 2}, {"done"}}};
  EXPECT_THAT(follow(), IsEmpty());
  EXPECT_THAT(scheduler.batches, IsEmpty());
  EXPECT_EQ(std::ranges::count(said, "squeue did not end within 120 s; asking again"), 1);
}

TEST_F(Follow, SubmitsWhatNeverReachedTheScheduler) {
  array.batches = {{"assay-a-1", "", {1, 2}, {}}};
  scheduler.lives = {{{"1", 1}, {"done"}}, {{"1", 2}, {"done"}}};
  EXPECT_THAT(follow(), IsEmpty());
  EXPECT_THAT(scheduler.batches, SizeIs(1));
}

TEST_F(Follow, ARefusedFirstJobIsTheUsersAffair) {
  scheduler.refuses = [](const Batch&) { return true; };
  EXPECT_THAT(error_of([&] { follow(); }), HasSubstr("no such nodes"));
  EXPECT_THAT(folder.read().batches, IsEmpty());
}

TEST_F(Follow, TriesAgainWhatWasRefusedAsLongAsOthersAreAtWork) {
  scheduler.lives = {{{"1", 1}, {"TIMEOUT"}},
                     {{"1", 2}, {"RUNNING", "RUNNING", "RUNNING", "RUNNING", "done"}},
                     {{"2", 1}, {"done"}}};
  int refusals = 3;
  scheduler.refuses = [&](const Batch& b) { return b.shards.size() == 1 && refusals-- > 0; };
  EXPECT_THAT(follow(), IsEmpty());
  EXPECT_THAT(scheduler.batches, SizeIs(2));
  EXPECT_EQ(refusals, -1);
  EXPECT_EQ(std::ranges::count(said, "sbatch refused the job: no such nodes; trying again"), 1);
  scheduler.refuses = nullptr;
}

TEST_F(Follow, ARefusalIsTheEndWhenNothingIsAtWork) {
  scheduler.lives = {{{"1", 1}, {"TIMEOUT"}}, {{"1", 2}, {"done"}}};
  scheduler.refuses = [](const Batch& b) { return b.shards.size() == 1; };
  EXPECT_THAT(error_of([&] { follow(); }), HasSubstr("no such nodes"));
}

TEST_F(Follow, TriesTheSameNodeWhereNoOtherIsThere) {
  scheduler.lives = {{{"1", 1}, {"NODE_FAIL"}}, {{"1", 2}, {"done"}}, {{"2", 1}, {"done"}}};
  scheduler.refuses = [](const Batch& b) { return !b.excluded.empty(); };
  EXPECT_THAT(follow(), IsEmpty());
  EXPECT_THAT(scheduler.batches[1].excluded, IsEmpty());
  EXPECT_THAT(said, Contains(HasSubstr("trying without --exclude=node1")));
}

// It may have cancelled some.
TEST_F(Follow, WhatWasCancelledIsNotedWhereScancelFails) {
  array.batches = {{"assay-a-1", "9", {1, 2}, {}}};
  scheduler.cancels_badly = true;
  Follower follower(array, folder, scheduler, {}, {});
  EXPECT_THROW(follower.cancel(), Refused);
  EXPECT_THAT(folder.read().cancelled, ElementsAre("9"));
}

TEST_F(Follow, WhatWasCancelledFromHereIsWantedStill) {
  array.batches = {{"assay-a-1", "9", {1, 2}, {}}};
  Follower follower(array, folder, scheduler, {}, {});
  follower.cancel();
  EXPECT_THAT(scheduler.cancelled, ElementsAre("9"));
  // While the job is ending, no other job gets its shards.
  scheduler.lives = {{{"9", 1}, {"COMPLETING", "COMPLETING", "CANCELLED"}},
                     {{"9", 2}, {"CANCELLED"}},
                     {{"1", 1}, {"done"}},
                     {{"1", 2}, {"done"}},
                     {{"2", 1}, {"done"}}};
  EXPECT_THAT(follow(0), IsEmpty());
  ASSERT_THAT(scheduler.batches, SizeIs(2));
  EXPECT_THAT(scheduler.batches[0].shards, ElementsAre(2));
  EXPECT_THAT(scheduler.batches[1].shards, ElementsAre(1));
}

}  // namespace
}  // namespace assay::slurm
