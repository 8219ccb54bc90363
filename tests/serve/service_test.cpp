#include "serve/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "serve/api_error.h"
#include "serve/service_fixture.h"

namespace assay::serve {
namespace {

using ::testing::ElementsAre;
using testing::graded;
using ::testing::HasSubstr;
using testing::request_for;
using testing::RunningService;
using testing::ScriptedGrade;

class ServiceTest : public ::testing::Test {
 protected:
  assay::testing::TemporaryFolder folder_;
};

int status_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const ApiError& e) {
    return e.status;
  }
  return 200;
}

TEST_F(ServiceTest, GradesATask) {
  RunningService running(folder_.path);
  const Json task = running.ended(running.submit(request_for("int x;", "trainer")));
  EXPECT_EQ(task["status"], "done");
  EXPECT_EQ(task["client"], "trainer");
  EXPECT_EQ(task["cached"], false);
  EXPECT_EQ(task["result"], graded());
  EXPECT_EQ(task["reward"]["right"], true);
  EXPECT_THAT(running.service.metrics(),
              HasSubstr("assay_serve_verdicts_total{verdict=\"OK\"} 1\n"));
}

TEST_F(ServiceTest, ALongPollEndsWithItsTime) {
  RunningService running(folder_.path);
  running.grade.hold();
  const std::string id = running.submit(request_for("int x;"));
  running.grade.wait_for_begun(1);
  const Json task = running.service.wait(id, 0.01);
  EXPECT_EQ(task["status"], "running");
  EXPECT_EQ(task["stage"], "build");
  EXPECT_TRUE(task["result"].is_null());
  running.grade.let_go();
  EXPECT_EQ(running.ended(id)["status"], "done");
}

TEST_F(ServiceTest, TheSameAgainIsAnsweredFromTheCache) {
  RunningService running(folder_.path);
  running.ended(running.submit(request_for("int x;")));
  const Json again = running.service.wait(running.submit(request_for("int x;", "another")), 0);
  EXPECT_EQ(again["status"], "done") << "at once";
  EXPECT_EQ(again["cached"], true);
  EXPECT_EQ(again["result"], graded());
  Json fresh = request_for("int x;");
  fresh["cache"] = false;
  EXPECT_EQ(running.ended(running.submit(fresh))["cached"], false);
  EXPECT_EQ(running.ended(running.submit(request_for("int y;")))["cached"], false);
  EXPECT_EQ(running.grade.begun().size(), 3u);
}

TEST_F(ServiceTest, TheSameThatWaitsIsGradedOnce) {
  RunningService running(folder_.path);
  running.grade.hold();
  const std::string first = running.submit(request_for("int x;"));
  const std::string second = running.submit(request_for("int x;"));
  running.grade.let_go();
  EXPECT_EQ(running.ended(first)["cached"], false);
  EXPECT_EQ(running.ended(second)["cached"], true);
  EXPECT_EQ(running.grade.begun().size(), 1u);
}

TEST_F(ServiceTest, WhatAFaultHadAPartInIsNotShared) {
  RunningService running(folder_.path);
  Json faulty = graded();
  faulty["harness_faults"] = {"tried again"};
  running.grade.give(faulty);
  running.ended(running.submit(request_for("int x;")));
  EXPECT_EQ(running.ended(running.submit(request_for("int x;")))["cached"], false);
}

TEST_F(ServiceTest, AFaultOfTheHarnessIsNoGrade) {
  RunningService running(folder_.path);
  running.grade.fail("no compiler");
  const Json thrown = running.ended(running.submit(request_for("int x;")));
  EXPECT_EQ(thrown["status"], "failed");
  EXPECT_EQ(thrown["why"], "no compiler");
  EXPECT_TRUE(thrown["reward"].is_null());
  running.grade.fail("");
  running.grade.give(graded("JE"));
  const Json told = running.ended(running.submit(request_for("int x;")));
  EXPECT_EQ(told["status"], "failed");
  EXPECT_EQ(told["why"], "the log");
}

TEST_F(ServiceTest, WhatWaitsIsCancelledAtOnce) {
  RunningService running(folder_.path);
  running.grade.hold();
  const std::string first = running.submit(request_for("int x;"));
  running.grade.wait_for_begun(1);
  const std::string second = running.submit(request_for("int y;"));
  EXPECT_EQ(running.service.cancel(second)["status"], "cancelled");
  EXPECT_EQ(status_of([&] { running.service.cancel(second); }), 409);
  EXPECT_EQ(status_of([&] { running.service.cancel("0"); }), 404);
  running.grade.let_go();
  EXPECT_EQ(running.ended(first)["status"], "done");
  EXPECT_EQ(running.grade.begun().size(), 1u);
}

TEST_F(ServiceTest, WhatRunsIsCancelledSoon) {
  RunningService running(folder_.path);
  running.grade.hold();
  const std::string id = running.submit(request_for("int x;"));
  running.grade.wait_for_begun(1);
  EXPECT_EQ(running.service.cancel(id)["status"], "running");
  EXPECT_EQ(running.ended(id)["status"], "cancelled");
}

TEST_F(ServiceTest, DeadlinesEndWhatRunsAndWhatWaits) {
  RunningService running(folder_.path);
  running.grade.hold();
  Json late = request_for("int x;");
  late["deadline_s"] = 0;
  const std::string first = running.submit(late);
  late["files"]["submission.cpp"] = "int y;";
  const std::string second = running.submit(late);
  EXPECT_EQ(running.ended(second)["status"], "expired");
  EXPECT_EQ(running.ended(first)["status"], "expired");
}

TEST_F(ServiceTest, AFullQueueRefusesAllOfABatch) {
  RunningService running(folder_.path, {.most_queued = 2}, false);
  running.submit(request_for("int a;"));
  try {
    running.service.submit({request_for("int b;"), request_for("int c;")}, "here");
    ADD_FAILURE();
  } catch (const ApiError& e) {
    EXPECT_EQ(e.status, 429);
    EXPECT_EQ(e.code, "queue_full");
    EXPECT_GT(e.retry_after_s, 0);
  }
  running.submit(request_for("int d;"));
  EXPECT_EQ(running.service.health()["queued"], 2);
  EXPECT_EQ(status_of([&] { running.submit(request_for("int e;")); }), 429);
}

TEST_F(ServiceTest, ABatchThatNeverFitsIsNotAskedToComeAgain) {
  RunningService running(folder_.path, {.most_queued = 1}, false);
  EXPECT_EQ(status_of([&] {
              running.service.submit({request_for("int b;"), request_for("int c;")}, "here");
            }),
            422);
}

TEST_F(ServiceTest, ABatchWithOneWrongRequestIsRefusedWithItsPlace) {
  RunningService running(folder_.path, {}, false);
  try {
    running.service.submit({request_for("int b;"), Json::object()}, "here");
    ADD_FAILURE();
  } catch (const ApiError& e) {
    EXPECT_THAT(e.what(), HasSubstr("tasks/1: "));
  }
  EXPECT_EQ(running.service.health()["queued"], 0);
}

TEST_F(ServiceTest, WithoutNvccCudaIsRefused) {
  RunningService running(folder_.path, {}, false);
  const Json cuda{{"challenge", "copying"}, {"files", {{"submission.cu", "int x;"}}}};
  EXPECT_EQ(status_of([&] { running.submit(cuda); }), 422);
}

TEST_F(ServiceTest, ClientsTakeTurns) {
  RunningService running(folder_.path, {}, false);
  for (const char* source : {"a1", "a2", "a3"}) running.submit(request_for(source, "a"));
  const std::string last = running.submit(request_for("b1", "b"));
  Json urgent = request_for("urgent", "a");
  urgent["priority"] = 9;
  running.submit(urgent);
  running.service.start();
  running.ended(last);
  EXPECT_THAT(running.grade.begun(), ::testing::IsSupersetOf({"urgent", "a1", "b1"}));
  EXPECT_EQ(running.grade.begun()[0], "urgent");
  EXPECT_EQ(running.grade.begun()[2], "b1") << "after one of the other's";
}

TEST_F(ServiceTest, AfterARestartResultsAreThereAndWhatWaitedIsGraded) {
  std::string done, waiting;
  {
    RunningService before(folder_.path, {.jobs = 1});
    done = before.submit(request_for("int x;"));
    before.ended(done);
    before.grade.hold();
    before.submit(request_for("int y;"));
    waiting = before.submit(request_for("int z;"));
  }
  RunningService after(folder_.path);
  EXPECT_EQ(after.service.wait(done, 0)["result"], graded());
  EXPECT_EQ(after.ended(waiting)["status"], "done");
  EXPECT_EQ(after.ended(after.submit(request_for("int x;")))["cached"], true);
  EXPECT_THAT(after.grade.begun(), ElementsAre("int y;", "int z;")) << "what ran, too";
}

// The remains of a killed server are made by hand: a running task, on disk.
TEST_F(ServiceTest, AfterAKillWhatRanIsLost) {
  const std::string id(32, 'a');
  {
    TaskStore store(folder_.path);
    store.save({.id = id,
                .number = 7,
                .status = TaskStatus::running,
                .owner = "here/",
                .challenge = "copying",
                .language = "cpp",
                .request = request_for("int x;")});
  }
  RunningService running(folder_.path);
  const Json task = running.service.wait(id, 0);
  EXPECT_EQ(task["status"], "lost");
  EXPECT_THAT(task["why"].get<std::string>(), HasSubstr("send it again"));
  EXPECT_TRUE(running.grade.begun().empty());
  EXPECT_EQ(running.ended(running.submit(request_for("int x;")))["status"], "done");
}

TEST_F(ServiceTest, WhatAnotherVersionAcceptedIsNotSharedAsItsOwn) {
  std::string waiting;
  {
    RunningService before(folder_.path, {.grader = "old"}, false);
    waiting = before.submit(request_for("int x;"));
  }
  RunningService after(folder_.path, {.grader = "new"});
  EXPECT_EQ(after.ended(waiting)["status"], "done");
  EXPECT_EQ(after.ended(after.submit(request_for("int x;")))["cached"], true);
}

TEST_F(ServiceTest, WhatWasCancelledIsNotGradedAfterARestart) {
  std::string id;
  {
    RunningService before(folder_.path);
    before.grade.hold();
    id = before.submit(request_for("int x;"));
    before.grade.wait_for_begun(1);
    before.service.cancel(id);
    before.service.stop();
  }
  RunningService after(folder_.path);
  EXPECT_EQ(after.service.wait(id, 0)["status"], "cancelled");
}

TEST_F(ServiceTest, ADamagedResultIsGradedAgain) {
  RunningService running(folder_.path);
  const std::string id = running.submit(request_for("int x;"));
  running.ended(id);
  std::ofstream(folder_.path / "tasks" / (id + ".json")) << "{";
  EXPECT_EQ(running.ended(running.submit(request_for("int x;")))["cached"], false);
  EXPECT_EQ(running.ended(running.submit(request_for("int x;")))["cached"], true);
}

// A folder in the place of the task's file keeps it from being replaced, as a full disk would.
TEST_F(ServiceTest, WhatCannotBeSavedExpiresAllTheSame) {
  RunningService running(folder_.path, {}, false);
  Json late = request_for("int x;");
  late["deadline_s"] = 0;
  const std::string id = running.submit(late);
  const std::filesystem::path file = folder_.path / "tasks" / (id + ".json");
  std::filesystem::remove(file);
  std::filesystem::create_directories(file / "x");
  EXPECT_EQ(running.ended(id)["status"], "expired");
  EXPECT_EQ(running.service.health()["queued"], 0);
}

TEST_F(ServiceTest, TheOldestEndedTasksAreForgotten) {
  RunningService running(folder_.path, {.kept = 2});
  const std::string first = running.submit(request_for("int x;"));
  running.ended(first);
  for (const char* source : {"int y;", "int z;"})
    running.ended(running.submit(request_for(source)));
  EXPECT_EQ(status_of([&] { running.service.wait(first, 0); }), 404);
  EXPECT_FALSE(running.store.load(first).has_value());
  EXPECT_EQ(running.ended(running.submit(request_for("int x;")))["cached"], false);
}

TEST_F(ServiceTest, WhoStopsTakesNothingMore) {
  RunningService running(folder_.path);
  running.service.stop();
  EXPECT_EQ(status_of([&] { running.submit(request_for("int x;")); }), 503);
}

}  // namespace
}  // namespace assay::serve
