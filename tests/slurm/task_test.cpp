#include "slurm/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error_of.h"

namespace assay::slurm {
namespace {

using ::testing::ElementsAre;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(JobFrom, IsTheNumberThatSbatchPrints) {
  EXPECT_EQ(job_from("123\n"), "123");
  EXPECT_EQ(job_from("123;cluster\n"), "123");
}

TEST(JobFrom, AnythingElseIsAnErrorThatShowsIt) {
  for (const char* text : {"", "\n", "Submitted batch job 12\n", "12a\n", "12\n13\n", ";cluster\n"})
    EXPECT_THAT(error_of([&] { job_from(text); }), HasSubstr("no job id")) << text;
  EXPECT_THAT(error_of([] { job_from("welcome!\x1b[2J\n12\n"); }), HasSubstr("welcome!\\x1b"));
}

TEST(TasksFrom, ReadsWhatSqueuePrints) {
  EXPECT_THAT(tasks_from("12|1|RUNNING|node1\n12|2|PENDING|\n", {"12"}),
              ElementsAre(Pair(TaskId{"12", 1}, TaskSeen{"RUNNING", "node1"}),
                          Pair(TaskId{"12", 2}, TaskSeen{"PENDING", ""})));
}

TEST(TasksFrom, ReadsWhatSacctPrints) {
  EXPECT_THAT(tasks_from("12_3|NODE_FAIL|n7\n12_4|CANCELLED by 1000|None assigned\n"
                         "12_[5-6,9%2]|PENDING|None assigned\n",
                         {"12"}),
              ElementsAre(Pair(TaskId{"12", 3}, TaskSeen{"NODE_FAIL", "n7"}),
                          Pair(TaskId{"12", 4}, TaskSeen{"CANCELLED", ""}),
                          Pair(TaskId{"12", 5}, TaskSeen{"PENDING", ""}),
                          Pair(TaskId{"12", 6}, TaskSeen{"PENDING", ""}),
                          Pair(TaskId{"12", 9}, TaskSeen{"PENDING", ""})));
}

TEST(TasksFrom, LeavesOutOtherJobsAndWhatIsNoArray) {
  EXPECT_THAT(tasks_from("13|1|RUNNING|n1\n12|N/A|RUNNING|n1\n12|RUNNING|n1\n\n", {"12"}),
              IsEmpty());
}

TEST(TasksFrom, AnythingElseIsAnErrorThatShowsIt) {
  for (const char* line :
       {"slurmctld is resting", "12|1|running|n1", "x|1|RUNNING|n1", "12|1|RUNNING|n1|more",
        "12|zero|RUNNING|n1", "12|0|RUNNING|n1", "12|1-99999999999|RUNNING|n1"}) {
    EXPECT_NE(error_of([&] { tasks_from(line, {"12"}); }), "no error") << line;
  }
}

TEST(Indices, AreRangesAndBack) {
  EXPECT_EQ(indices({1, 2, 3, 7, 9, 10}), "1-3,7,9-10");
  EXPECT_EQ(indices({4}), "4");
  EXPECT_THAT(indices_from("1-3,7,9-10"), ElementsAre(1, 2, 3, 7, 9, 10));
}

Standing standing(const char* state, Marks marks = {}) {
  return judge(TaskSeen{state, "n1"}, marks).standing;
}

TEST(Judge, KnowsWhatIsNotOver) {
  for (const char* state : {"PENDING", "REQUEUED"}) EXPECT_EQ(standing(state), Standing::waiting);
  for (const char* state : {"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED"})
    EXPECT_EQ(standing(state), Standing::running) << state;
}

TEST(Judge, TheMarkOfAGoodEndCountsWhateverTheSchedulerSays) {
  EXPECT_EQ(standing("RUNNING", {"n1", 0}), Standing::done);
  EXPECT_EQ(standing("NODE_FAIL", {"n1", 0}), Standing::done);
  EXPECT_EQ(judge({}, {"n1", 0}).standing, Standing::done);
}

TEST(Judge, WaitsForTheEndOfATaskThatMarkedAnError) {
  EXPECT_EQ(standing("COMPLETING", {"n1", 2}), Standing::running);
  const Judgement j = judge(TaskSeen{"FAILED", "n1"}, {"n1", 2});
  EXPECT_EQ(j.standing, Standing::failed);
  EXPECT_EQ(j.reason, "exit status 2");
  EXPECT_TRUE(j.avoid_node);
}

TEST(Judge, NamesTheStateAndTheNodeOfAFailure) {
  for (const char* state : {"NODE_FAIL", "FAILED", "OUT_OF_MEMORY", "BOOT_FAIL"}) {
    const Judgement j = judge(TaskSeen{state, ""}, {"n4", {}});
    EXPECT_EQ(j.standing, Standing::failed);
    EXPECT_EQ(j.reason, state);
    EXPECT_EQ(j.node, "n4");
    EXPECT_TRUE(j.avoid_node) << state;
  }
}

TEST(Judge, DoesNotBlameTheNodeForTheLimitOfTimeOrForOthers) {
  for (const char* state : {"TIMEOUT", "PREEMPTED"}) {
    EXPECT_EQ(standing(state), Standing::failed);
    EXPECT_FALSE(judge(TaskSeen{state, "n1"}, {}).avoid_node) << state;
  }
}

TEST(Judge, WhatAPersonCancelledIsNoFailure) {
  EXPECT_EQ(standing("CANCELLED"), Standing::cancelled);
}

TEST(Judge, AnEndWithoutAMarkIsUnclear) {
  EXPECT_EQ(standing("COMPLETED"), Standing::unclear);
  EXPECT_EQ(judge({}, {"n1", {}}).standing, Standing::unclear);
}

}  // namespace
}  // namespace assay::slurm
