#include "agent/process_tree.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "assay/error.h"
#include "support/child_process.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"
#include "util/clock.h"
#include "util/files.h"

namespace assay::agent {
namespace {
using testing::error_of;
using ::testing::HasSubstr;

struct Ran {
  Ended ended;
  std::string output;
};

class ProgramTest : public ::testing::Test {
 protected:
  Ran run(const std::string& script, double limit = 60, double grace = 0.2) {
    Program program;
    program.command = {"sh", "-c", script};
    program.folder = folder.path;
    program.time_limit = limit;
    program.grace = grace;
    program.variables = {{"ASSAY_PROMPT", "the prompt"}, {"HOME", "/elsewhere"}};
    return run(program);
  }
  static Ran run(const Program& program) {
    Ran ran;
    ran.ended = run_program(program, [&](std::string_view bytes) { ran.output += bytes; });
    return ran;
  }
  // Whether the process whose number a script wrote to the file has ended.
  bool is_gone(const std::string& file) const {
    const int pid = std::stoi(read_file(folder.path / file));
    return ::kill(pid, 0) != 0;
  }

  testing::TemporaryFolder folder;
};

TEST_F(ProgramTest, OutputStatusAndSurroundings) {
  const Ran ran = run("pwd; echo \"$ASSAY_PROMPT $HOME\"; echo err >&2; cat; exit 7");
  EXPECT_EQ(ran.ended.how, Ended::How::exited);
  EXPECT_EQ(ran.ended.status, 7);
  EXPECT_EQ(ran.output,
            std::filesystem::canonical(folder.path).string() + "\nthe prompt /elsewhere\nerr\n");
}

TEST_F(ProgramTest, InputIsAFile) {
  Program program;
  program.command = {"cat"};
  program.folder = folder.path;
  program.input = folder.path / "in";
  program.time_limit = 60;
  write_file_atomically(program.input, "told");
  EXPECT_EQ(run(program).output, "told");
}

TEST_F(ProgramTest, WhatIsNotThereIsSaid) {
  Program program;
  program.command = {"no-such-program-anywhere"};
  program.folder = folder.path;
  program.time_limit = 60;
  EXPECT_THAT(error_of([&] { run(program); }),
              HasSubstr("cannot start 'no-such-program-anywhere': No such file"));
  write_file_atomically(folder.path / "plain", "");
  program.command = {(folder.path / "plain").string()};
  EXPECT_THAT(error_of([&] { run(program); }), HasSubstr("Permission denied"));
}

TEST_F(ProgramTest, ASignalIsTold) {
  const Ran ran = run("kill -SEGV $$");
  EXPECT_EQ(ran.ended.how, Ended::How::killed);
  EXPECT_EQ(ran.ended.status, SIGSEGV);
}

TEST_F(ProgramTest, EndsAtTheTimeLimitWhateverItIgnores) {
  const Ran ran = run("trap '' TERM INT; echo $$ >pid; while :; do sleep 0.05; done", 0.3);
  EXPECT_EQ(ran.ended.how, Ended::How::timed_out);
  EXPECT_TRUE(is_gone("pid"));
}

TEST_F(ProgramTest, MayCleanUpAtTheTimeLimit) {
  const Ran ran = run(
      "exec 2>/dev/null; trap 'echo cleaned; exit' TERM; echo begun; while :; do sleep 0.05; done",
      0.3, 60);
  EXPECT_EQ(ran.ended.how, Ended::How::timed_out);
  EXPECT_EQ(ran.output, "begun\ncleaned\n");
}

TEST_F(ProgramTest, NothingIsLeftOfWhatItStarted) {
  // One in the group, one in another session, and a grandchild in yet another session; one of them
  // holds the output open.
  const Ran ran =
      run("(trap '' TERM; sleep 1000) & echo $! >a\n"
          "setsid sh -c 'echo $$ >b; exec sleep 1000 >/dev/null 2>&1' &\n"
          "setsid sh -c 'setsid sh -c \"trap : TERM; echo \\$\\$ >c; sleep 1000; sleep 1000\" & "
          "exit' &\n"
          "while ! [ -s c ] || ! [ -s b ]; do sleep 0.02; done");
  EXPECT_EQ(ran.ended.how, Ended::How::exited);
  for (const char* file : {"a", "b", "c"}) EXPECT_TRUE(is_gone(file)) << file;
}

TEST_F(ProgramTest, GoesOnWithoutOutput) {
  const Ran ran = run("echo x; exec >&- 2>&-; sleep 0.2; echo done >file");
  EXPECT_EQ(ran.output, "x\n");
  EXPECT_EQ(read_file(folder.path / "file"), "done\n");
}

TEST_F(ProgramTest, MuchOutputIsNotHeldUp) {
  EXPECT_EQ(run("head -c 5000000 /dev/zero").output.size(), 5000000u);
}

TEST_F(ProgramTest, AReceiverThatFailsEndsIt) {
  Program program;
  program.command = {"sh", "-c", "echo $$ >pid; echo x; sleep 1000"};
  program.folder = folder.path;
  program.time_limit = 60;
  program.grace = 0.2;
  EXPECT_EQ(error_of([&] { run_program(program, [](std::string_view) { throw Error("full"); }); }),
            "full");
  EXPECT_TRUE(is_gone("pid"));
}

TEST_F(ProgramTest, SeveralAtOnceKnowTheirOwn) {
  std::vector<std::jthread> threads;
  std::array<Ran, 4> ran;
  for (std::size_t i = 0; i < ran.size(); ++i) {
    threads.emplace_back([&, i] {
      ran[i] = run("setsid sleep " + std::to_string(i == 0 ? 0.1 : 0.6) + " & wait; echo " +
                   std::to_string(i));
    });
  }
  threads.clear();
  for (std::size_t i = 0; i < ran.size(); ++i) {
    EXPECT_EQ(ran[i].output, std::to_string(i) + "\n");
    EXPECT_EQ(ran[i].ended.status, 0);
  }
}

// The harness is killed by SIGKILL, so it can tell nobody.
TEST_F(ProgramTest, EndsWithTheHarness) {
  {
    testing::ChildProcess harness([&](const testing::ChildProcess& self) {
      Program program;
      program.command = {"sh", "-c",
                         "setsid sh -c 'echo $$ >pid; echo x; exec sleep 1000'; sleep 1000"};
      program.folder = folder.path;
      program.time_limit = 1000;
      program.grace = 0.2;
      run_program(program, [&](std::string_view) { self.signal(); });
    });
    ASSERT_TRUE(harness.wait_for_signal());
    harness.kill();
  }
  for (const double end = steady_seconds() + 30; !is_gone("pid") && steady_seconds() < end;)
    ::usleep(10000);
  EXPECT_TRUE(is_gone("pid"));
}

}  // namespace
}  // namespace assay::agent
