#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "sandbox/landlock.h"
#include "sandbox/probe.h"
#include "sandbox/worker_image.h"
#include "util/files.h"

namespace assay::sandbox {
namespace {

using namespace std::chrono_literals;

// A shell in the sandbox: not what the worker policy permits, so the compiler's.
Program shell(const std::string& script, const Fd& null) {
  Program program;
  program.policy = Policy::compiler;
  program.mounts = library_mounts();
  program.mounts.push_back({"/usr/bin", "/usr/bin", false});
  program.exec_path = "/usr/bin/sh";
  program.argv = {"sh", "-c", script};
  program.env = {"PATH=/usr/bin"};
  program.fds = {null.get(), null.get(), null.get()};
  return program;
}

class SandboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    report_ = find_tier(worker_image_fd());
    if (report_.tier != Tier::namespaces) GTEST_SKIP() << report_.why_not_namespaces;
  }

  Exit run(const Program& program) {
    Process process = spawn(Tier::namespaces, program);
    const auto exit = process.wait(60s);
    EXPECT_TRUE(exit.has_value()) << "hung";
    return exit.value_or(Exit{});
  }

  Fd null_{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  TierReport report_;
};

TEST_F(SandboxTest, ContainsEveryEscapeAttempt) {
  for (const ProbeResult& probe : report_.probes) {
    EXPECT_TRUE(probe.contained) << probe.attempt << ": " << probe.outcome;
  }
  EXPECT_GE(report_.probes.size(), 10u);
}

TEST_F(SandboxTest, GivesTheRawWaitStatus) {
  EXPECT_EQ(run(shell("exit 139", null_)).status, 139 << 8);
  const int status = run(shell("kill -SEGV $$", null_)).status;
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGSEGV);
}

TEST_F(SandboxTest, ShowsOnlyTheMounts) {
  EXPECT_EQ(
      run(shell("test -e /etc/passwd && exit 1; test -e /proc && exit 2; test -e /home && exit 3;"
                "test -e /usr/lib || exit 4; (: > /usr/bin/x) 2>/dev/null && exit 5; exit 0",
                null_))
          .status,
      0);
}

TEST_F(SandboxTest, WritesOnlyToWritableMounts) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("assay-sandbox-" + std::to_string(::getpid()));
  std::filesystem::create_directory(folder);
  Program program = shell("echo hello > /out/file", null_);
  program.mounts.push_back({folder, "/out", true});
  program.limits.file_size = 1 << 20;
  EXPECT_EQ(run(program).status, 0);
  EXPECT_EQ(read_file(folder / "file"), "hello\n");
  std::filesystem::remove_all(folder);
}

TEST_F(SandboxTest, KillsDescendantsWithTheSandbox) {
  // The grandchild holds the pipe's write end; end-of-file proves that it is gone.
  int fds[2];
  ASSERT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  Program program = shell("(trap '' TERM HUP; sleep 1000) & exit 0", null_);
  program.fds = {null_.get(), fds[1], null_.get()};
  {
    Process process = spawn(Tier::namespaces, program);
    ::close(fds[1]);
    ASSERT_TRUE(process.wait(60s).has_value());
  }
  char byte;
  EXPECT_EQ(::read(fds[0], &byte, 1), 0);
  ::close(fds[0]);
}

TEST_F(SandboxTest, StopsAndResumesEveryThread) {
  Process process = spawn(Tier::namespaces, shell("while :; do :; done", null_));
  ASSERT_TRUE(process.stop());
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(process.wait(0ms).has_value());
  process.resume();
  EXPECT_TRUE(process.stop());
  process.kill();
  const auto exit = process.wait(0ms);
  ASSERT_TRUE(exit.has_value());
  EXPECT_TRUE(WIFSIGNALED(exit->status));
}

TEST_F(SandboxTest, LimitsProcessorTime) {
  Program program = shell("while :; do :; done", null_);
  program.limits.cpu_seconds = 1;
  EXPECT_TRUE(WIFSIGNALED(run(program).status));
}

TEST_F(SandboxTest, HidesOpenFiles) {
  const Fd secret(::open("/etc/hostname", O_RDONLY));  // without O_CLOEXEC
  EXPECT_EQ(run(shell("for fd in 3 4 5 6 7 8 9; do (: <&$fd) 2>/dev/null && exit $fd; done; exit 0",
                      null_))
                .status,
            0);
}

TEST_F(SandboxTest, FailsLoudlyForAMissingMount) {
  Program program = shell("exit 0", null_);
  program.mounts.push_back({"/no/such/folder", "/x", false});
  EXPECT_THROW(spawn(Tier::namespaces, program), Error);
}

TEST_F(SandboxTest, ReportsAProgramThatDoesNotExist) {
  Program program = shell("exit 0", null_);
  program.exec_path = "/usr/bin/no-such-program";
  try {
    spawn(Tier::namespaces, program);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("executing"), std::string::npos) << e.what();
  }
}

// Launching forks while other threads hold locks of the C library: nothing between fork and exec may
// want one.
TEST_F(SandboxTest, LaunchesFromSeveralThreadsAtOnce) {
  std::atomic<int> good{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 40; ++i) {
          std::thread([] { std::vector<char> churn(4096); }).join();
          if (run(shell("exit 0", null_)).status == 0) ++good;
        }
      });
    }
  }
  EXPECT_EQ(good, 160);
}

TEST(LandlockTier, ContainsWhatItCanWithoutNamespaces) {
  if (landlock_abi() == 0) GTEST_SKIP() << "no Landlock in this kernel";
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const char* attempt : {"read_etc", "read_proc", "write_tmp", "socket", "fork",
                              "signal_others", "inherited_fd", "affinity"}) {
    Program program;
    program.mounts = library_mounts();
    program.exec_fd = worker_image_fd();
    program.argv = {"worker", "--probe", attempt};
    program.fds.assign(8, null.get());
    Process process = spawn(Tier::landlock, program);
    const auto exit = process.wait(60s);
    ASSERT_TRUE(exit.has_value()) << attempt;
    const bool killed = WIFSIGNALED(exit->status) && WTERMSIG(exit->status) == SIGSYS;
    EXPECT_TRUE(killed || exit->status == 0) << attempt << " status " << exit->status;
  }
}

TEST(UnsafeTier, DoesNotContain) {
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  Program program;
  program.exec_fd = worker_image_fd();
  program.argv = {"worker", "--probe", "read_etc"};
  program.fds.assign(8, null.get());
  Process process = spawn(Tier::none, program);
  const auto exit = process.wait(60s);
  ASSERT_TRUE(exit.has_value());
  EXPECT_EQ(exit->status, 1 << 8) << "the probe itself no longer detects an escape";
}

}  // namespace
}  // namespace assay::sandbox
