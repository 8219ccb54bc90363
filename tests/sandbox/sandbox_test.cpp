#include "sandbox/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "assay/error.h"
#include "sandbox/landlock.h"
#include "sandbox/probe.h"
#include "sandbox/runtime_files.h"
#include "sandbox/worker_image.h"
#include "sandbox/workplace.h"
#include "support/error_of.h"
#include "util/files.h"

namespace assay::sandbox {
namespace {

using namespace std::chrono_literals;

// A shell in the sandbox, under the compiler's policy: the worker's does not permit a shell.
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

// A program whose child holds the pipe and prints a line. The child comes last in a pipeline,
// because shells need /dev/null for the first command of one in the background.
Program with_descendant(const Fd& null, const Pipe& pipe) {
  Program program = shell("trap '' TERM HUP; true | { echo; sleep 1000; } & wait", null);
  program.fds = {null.get(), pipe.write.get(), null.get()};
  return program;
}

// End-of-file proves that no process holds the pipe any more.
void expect_gone(const Pipe& pipe) {
  char byte;
  pollfd entry{pipe.read.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&entry, 1, 30000), 1) << "somebody still holds the pipe";
  EXPECT_EQ(::read(pipe.read.get(), &byte, 1), 0);
}

void expect_descendants_killed(Tier tier) {
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  Pipe pipe = make_pipe();
  Process process = spawn(tier, with_descendant(null, pipe));
  pipe.write.reset();
  char byte;
  ASSERT_EQ(::read(pipe.read.get(), &byte, 1), 1) << "the descendant did not start";
  process.kill();
  expect_gone(pipe);
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

TEST(FirstThread, TheKernelTellsOfItsEndBeforeItIsThere) {
  EXPECT_FALSE(tells_of_end("42 (worker) R 1 42 42 0 -1 4194304 100"));
  EXPECT_FALSE(tells_of_end("42 (a) Z 4) S 1 42 42 0 -1 64 100")) << "the name is the program's";
  EXPECT_TRUE(tells_of_end("42 (worker) Z 1 42 42 0 -1 4194304 100"));
  EXPECT_TRUE(tells_of_end("42 (worker) R 1 42 42 0 -1 4194308 100"));
  EXPECT_FALSE(tells_of_end("")) << "it is gone: others tell that";
}

TEST_F(SandboxTest, ContainsEveryEscapeAttempt) {
  for (const ProbeResult& probe : report_.probes) {
    EXPECT_TRUE(probe.contained) << probe.attempt << ": " << probe.outcome;
  }
  EXPECT_GE(report_.probes.size(), 21u);
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

TEST_F(SandboxTest, KillsDescendantsWithTheSandbox) { expect_descendants_killed(Tier::namespaces); }

TEST_F(SandboxTest, StopsAndResumesEveryProcess) {
  Process process =
      spawn(Tier::namespaces, shell("while :; do :; done & while :; do :; done", null_));
  const auto until_more_than = [&](double seconds) {
    while (process.cpu_seconds() <= seconds) std::this_thread::sleep_for(1ms);
  };
  until_more_than(0);
  ASSERT_EQ(process.stop(), Process::Stop::stopped);
  const double spent = process.cpu_seconds();
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(process.wait(0ms).has_value());
  EXPECT_EQ(process.cpu_seconds(), spent) << "nothing runs";
  process.resume();
  until_more_than(spent);
  EXPECT_EQ(process.stop(), Process::Stop::stopped);
  EXPECT_TRUE(process.kill());
  const auto exit = process.wait(0ms);
  ASSERT_TRUE(exit.has_value());
  EXPECT_TRUE(WIFSIGNALED(exit->status));
}

TEST_F(SandboxTest, SeesAnEndInsteadOfAStop) {
  Process process = spawn(Tier::namespaces, shell("exit 3", null_));
  ASSERT_TRUE(process.wait(60s).has_value());
  EXPECT_EQ(process.stop(), Process::Stop::ended);
}

TEST_F(SandboxTest, RunsOnTheCoresThatAreGiven) {
  cpu_set_t mine;
  ASSERT_EQ(::sched_getaffinity(0, sizeof mine, &mine), 0);
  int last = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mine)) last = cpu;
  }
  Program program = shell("exit $(nproc)", null_);
  EXPECT_EQ(run(program).status, std::min(CPU_COUNT(&mine), 255) << 8);
  program.cores = {last};
  EXPECT_EQ(run(program).status, 1 << 8);
}

TEST_F(SandboxTest, LimitsProcessorTime) {
  Program program = shell("while :; do :; done", null_);
  program.limits.cpu_seconds = 1;
  EXPECT_TRUE(WIFSIGNALED(run(program).status));
}

TEST_F(SandboxTest, LimitsPrivateMemoryThatCanBeWritten) {
  Program program = shell("[ $(ulimit -d) = 65536 ]", null_);
  EXPECT_NE(run(program).status, 0);
  program.limits.data = 64 << 20;
  EXPECT_EQ(run(program).status, 0);
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

// The launcher may not allocate: its capacity is fixed, and checked before it starts.
TEST_F(SandboxTest, RefusesMoreDescriptorsThanItCanPlace) {
  Program program = shell("exit 0", null_);
  program.fds.assign(32, null_.get());
  program.limits.open_files = 64;
  EXPECT_EQ(WEXITSTATUS(run(program).status), 0);
  program.fds.push_back(null_.get());
  EXPECT_EQ(testing::error_of([&] { run(program); }),
            "a sandboxed program is given at most 32 descriptors, not 33");
}

TEST_F(SandboxTest, RefusesMoreMountsThanItHasRoomFor) {
  Program program = shell("exit 0", null_);
  while (program.mounts.size() < 33) program.mounts.push_back({"/usr/bin", "/bin", false});
  EXPECT_EQ(testing::error_of([&] { run(program); }),
            "a sandbox shows at most 32 files and folders, not 33");
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

// Launching forks while other threads hold locks of the C library: nothing between fork and exec
// may need such a lock.
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

class LandlockTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (landlock_abi() == 0) GTEST_SKIP() << "no Landlock in this kernel";
  }

  Exit run(const Program& program) {
    Process process = spawn(Tier::landlock, program);
    const auto exit = process.wait(60s);
    EXPECT_TRUE(exit.has_value()) << "hung";
    return exit.value_or(Exit{});
  }

  Fd null_{::open("/dev/null", O_RDWR | O_CLOEXEC)};
};

TEST_F(LandlockTest, ContainsEveryEscapeAttempt) {
  const std::vector<ProbeResult> probes = attempt_escapes(Tier::landlock, worker_image_fd());
  for (const ProbeResult& probe : probes) {
    EXPECT_TRUE(probe.contained) << probe.attempt << ": " << probe.outcome;
  }
  EXPECT_GE(probes.size(), 19u);
}

TEST_F(LandlockTest, DoesNotStartInTheHarnesssFolder) {
  EXPECT_EQ(run(shell("test \"$(pwd -P)\" = /", null_)).status, 0);
}

TEST_F(LandlockTest, SaysWhatItsUserCannotReach) {
  if (::geteuid() != 0) GTEST_SKIP() << "an ordinary user's programs keep that user's id";
  const Workplace place(Tier::landlock, "");
  const auto closed = place.path() / "closed", file = closed / "file";
  std::filesystem::create_directory(closed);
  std::filesystem::permissions(closed, std::filesystem::perms(0700));
  write_file_atomically(file, "");
  Program program = shell("exit 0", null_);
  program.mounts.push_back({file, "/file", false});
  try {
    spawn(Tier::landlock, program);
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(closed.string() + " is closed"), std::string::npos)
        << e.what();
  }
}

TEST_F(LandlockTest, KillsDescendantsWithTheSandbox) { expect_descendants_killed(Tier::landlock); }

// In a user namespace that has none of the usual ids, only those of a small container.
TEST_F(LandlockTest, FindsAUserWhereThereAreFew) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving out ids needs root";
  Pipe ready = make_pipe(), mapped = make_pipe();
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    if (::unshare(CLONE_NEWUSER) != 0) ::_exit(77);
    ready.write.reset();
    mapped.write.reset();
    if (::read(mapped.read.get(), &byte, 1) != 1) ::_exit(77);
    if (::setresgid(0, 0, 0) != 0 || ::setresuid(0, 0, 0) != 0) ::_exit(77);
    try {
      const Program program = shell("test $(id -u) -gt 0 -a $(id -u) -lt 65536 && exit 5", null_);
      ::_exit(run(program).status == 5 << 8 ? 0 : 1);
    } catch (const Error& e) {
      std::fprintf(stderr, "%s\n", e.what());
      ::_exit(2);
    }
  }
  ready.write.reset();
  char byte = 0;
  while (::read(ready.read.get(), &byte, 1) > 0) {
  }
  for (const char* map : {"uid_map", "gid_map"}) {
    std::ofstream("/proc/" + std::to_string(child) + "/" + map) << "0 100000 65536\n";
  }
  ASSERT_EQ(::write(mapped.write.get(), "x", 1), 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "no user namespaces here";
  EXPECT_EQ(status, 0);
}

// A killed harness leaves nothing running: neither the program nor what it started.
class KilledHarness : public ::testing::TestWithParam<Tier> {};

TEST_P(KilledHarness, LeavesNothingRunning) {
  const TierReport report = find_tier(worker_image_fd());
  if (GetParam() == Tier::namespaces && report.tier != Tier::namespaces) GTEST_SKIP();
  if (GetParam() == Tier::landlock && landlock_abi() == 0) GTEST_SKIP();
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  Pipe pipe = make_pipe();
  const pid_t harness = ::fork();
  if (harness == 0) {
    Process process = spawn(GetParam(), with_descendant(null, pipe));
    pipe.write.reset();
    ::pause();
  }
  pipe.write.reset();
  char byte;
  const ssize_t started = ::read(pipe.read.get(), &byte, 1);
  ::kill(harness, SIGKILL);
  ::waitpid(harness, nullptr, 0);
  ASSERT_EQ(started, 1) << "the descendant did not start";
  expect_gone(pipe);
}

INSTANTIATE_TEST_SUITE_P(Tiers, KilledHarness, ::testing::Values(Tier::namespaces, Tier::landlock),
                         [](const auto& tier) {
                           return tier.param == Tier::namespaces ? "namespaces" : "landlock";
                         });

// If the probes never failed, every tier would seem to hold.
TEST(UnsafeTier, DoesNotContain) {
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const Workplace place(Tier::none, "");
  const std::string file = place.path() / "file", proc = "/proc/" + std::to_string(::getpid());
  const std::pair<const char*, std::string> attempts[] = {
      {"read", "/etc/passwd"}, {"write", file},         {"read", file},
      {"list", place.path()},  {"read", proc + "/mem"}, {"list", proc + "/fd"},
      {"affinity", ""},        {"continue_itself", ""}, {"continue_by_a_long_number", ""},
      {"wait_on_shared", ""},  {"huge_pages", ""},      {"load", foreign_library()}};
  for (const auto& [action, target] : attempts) {
    Program program;
    program.exec_fd = worker_image_fd();
    program.argv = {"worker", "--probe", action, target};
    program.fds.assign(8, null.get());
    Process process = spawn(Tier::none, program);
    const auto exit = process.wait(60s);
    ASSERT_TRUE(exit.has_value());
    if (target.empty() && std::string(action) == "load") continue;  // no other library to load here
    EXPECT_EQ(exit->status, 1 << 8) << action << " " << target << " went unnoticed";
  }
}

}  // namespace
}  // namespace assay::sandbox
