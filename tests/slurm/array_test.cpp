#include "slurm/array.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "slurm/scheduler.h"
#include "slurm/script.h"
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
using ::testing::Not;

Array example() {
  Array a;
  a.id = "a";
  a.command = {"--array=3", "--", "--quick"};
  a.shards = 3;
  a.answers = 7;
  a.seed = 18'000'000'000'000'000'000ULL;
  a.batches = {{"assay-a-1", "12", {1, 2, 3}, {}}, {"assay-a-2", "13", {2}, {"n1"}}};
  a.failures = {{{"12", 2}, "NODE_FAIL", "n1", true, true}};
  a.done = {1};
  a.cancelled = {"12"};
  return a;
}

TEST(ArrayFile, ComesBackAsItWas) {
  const testing::TemporaryFolder temporary;
  const ArrayFolder folder(temporary.path);
  folder.write(example());
  const Array a = folder.read();
  EXPECT_EQ(a.id, "a");
  EXPECT_EQ(a.command, example().command);
  EXPECT_EQ(a.shards, 3U);
  EXPECT_EQ(a.answers, 7U);
  EXPECT_EQ(a.seed, example().seed);
  ASSERT_EQ(a.batches.size(), 2U);
  EXPECT_EQ(a.batches[1].job, "13");
  EXPECT_THAT(a.batches[1].excluded, ElementsAre("n1"));
  ASSERT_EQ(a.failures.size(), 1U);
  EXPECT_EQ(a.failures[0].task, (TaskId{"12", 2}));
  EXPECT_TRUE(a.failures[0].avoid_node);
  EXPECT_THAT(a.done, ElementsAre(1));
  EXPECT_THAT(a.cancelled, ElementsAre("12"));
}

TEST(ArrayFile, AnotherFormIsAnErrorThatNamesIt) {
  const testing::TemporaryFolder temporary;
  const ArrayFolder folder(temporary.path);
  for (const char* text : {"", "{}", R"({"schema": 2})", "[1]"}) {
    write_file_atomically(temporary.path / "array.json", text);
    EXPECT_THAT(error_of([&] { folder.read(); }), HasSubstr("array.json")) << text;
  }
}

TEST(Array, TheTaskOfAShardIsTheLastThatDidNotFail) {
  Array a = example();
  EXPECT_EQ(a.task_of(1), (TaskId{"12", 1}));
  EXPECT_EQ(a.task_of(2), (TaskId{"13", 2}));
  a.failures.push_back({{"13", 2}, "FAILED", "", false, true});
  EXPECT_EQ(a.task_of(2), std::nullopt);
  EXPECT_EQ(a.failures_of(2), 2U);
  EXPECT_THAT(a.nodes_to_avoid({2}), ElementsAre("n1"));
  EXPECT_THAT(a.nodes_to_avoid({3}), ElementsAre());
}

TEST(UnfinishedArray, IsTheNewest) {
  const testing::TemporaryFolder temporary;
  EXPECT_FALSE(unfinished_array(temporary.path));
  for (const char* id : {"1", "2", "3"}) {
    fs::create_directories(temporary.path / "slurm" / id);
    Array a = example();
    a.finished = id == std::string("3");
    ArrayFolder(temporary.path / "slurm" / id).write(a);
  }
  const auto found = unfinished_array(temporary.path);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->path().filename(), "2");
}

TEST(Marks, AreReadAndGarbageIsRefused) {
  const testing::TemporaryFolder temporary;
  const ArrayFolder folder(temporary.path);
  fs::create_directories(folder.marks());
  EXPECT_EQ(folder.marks_of({"12", 3}).ended, std::nullopt);
  write_file_atomically(folder.marks() / "3.12.began", "node7\n");
  write_file_atomically(folder.marks() / "3.12.ended", "143\n");
  EXPECT_EQ(folder.marks_of({"12", 3}).node, "node7");
  EXPECT_EQ(folder.marks_of({"12", 3}).ended, 143);
  write_file_atomically(folder.marks() / "3.12.ended", "fine\n");
  EXPECT_THAT(error_of([&] { folder.marks_of({"12", 3}); }), HasSubstr("3.12.ended"));
}

TEST(SbatchCommand, SaysWhatToSubmitAndPassesTheRestOn) {
  const ArrayFolder folder("/shared/r/slurm/a");
  const JobOptions options{
      .sbatch = {"--exclusive", "--partition=long"}, .at_once = 4, .folder = "/home/me"};
  const auto words = sbatch_command(options, folder, {"assay-a-2", "", {1, 2, 5}, {"n1", "n2"}});
  EXPECT_EQ(words.front(), "sbatch");
  EXPECT_EQ(words.back(), "/shared/r/slurm/a/job.sh");
  for (const char* word : {"--parsable", "--array=1-2,5%4", "--no-requeue", "--exclusive",
                           "--partition=long", "--exclude=n1,n2", "--chdir=/home/me",
                           "--job-name=assay-a-2", "--output=/shared/r/slurm/a/logs/%a.%A.log"}) {
    EXPECT_THAT(words, Contains(word));
  }
  EXPECT_THAT(sbatch_command({}, folder, {"n", "", {1}, {}}), Contains("--array=1"));
}

TEST(JobScript, QuotesWhatAShellWouldTakeApart) {
  const ArrayFolder folder("/shared/it's here");
  const std::string script =
      job_script({.assay = {"/opt/my assay"}, .run = {"-m", "a b"}}, folder, example());
  EXPECT_THAT(script, HasSubstr("'/opt/my assay' run -m 'a b'"));
  EXPECT_THAT(script, HasSubstr("marks='/shared/it'\\''s here/marks'"));
  EXPECT_THAT(script, HasSubstr("--shard \"$shard/3\""));
  EXPECT_THAT(script, HasSubstr("--seed 18000000000000000000"));
  EXPECT_THAT(script, HasSubstr("--cache \"$cache\""));
  EXPECT_THAT(script, HasSubstr("\nmkdir -m 700 \"$cache\" "));
}

TEST(JobScript, LeavesToTheUserWhatTheUserNamed) {
  const std::string script = job_script(
      {.assay = {"assay"}, .run = {}, .own_cache = true, .own_jobs = true, .own_seed = true},
      ArrayFolder("/s"), example());
  for (const char* option : {"--seed", "--cache", "--jobs", "mkdir"})
    EXPECT_THAT(script, Not(HasSubstr(option)));
}

}  // namespace
}  // namespace assay::slurm
