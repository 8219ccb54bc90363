#include "sandbox/spawner.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "assay/error.h"
#include "sandbox/sandbox.h"
#include "support/error_of.h"
#include "util/fd.h"
#include "util/files.h"

namespace assay::sandbox {
namespace {

using namespace std::chrono_literals;

int exit_status(Program program) {
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  program.fds = {null.get(), null.get(), null.get()};
  return spawn(Tier::none, program).wait(60s).value_or(Exit{-1, {}}).status;
}

Program shell(const std::string& script) {
  Program program;
  program.exec_path = "/bin/sh";
  program.argv = {"sh", "-c", script};
  return program;
}

pid_t parent_of(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string id, name, state;
  pid_t parent = -1;
  in >> id >> name >> state >> parent;
  return parent;
}

// The kinds of a process's open descriptors, except /dev/null, such as "socket pipe".
std::string held_by(pid_t pid) {
  std::string held;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    std::error_code closed_meanwhile;
    const std::string target = std::filesystem::read_symlink(entry, closed_meanwhile);
    if (target == "/dev/null" || target.empty()) continue;
    held += (held.empty() ? "" : " ") + target.substr(0, target.find(':'));
  }
  return held;
}

class SpawnerTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(exit_status(shell("exit 0")), 0); }
};

TEST_F(SpawnerTest, ProgramsAreThisProcesssChildren) {
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  Program program = shell("sleep 1000");
  program.fds = {null.get(), null.get(), null.get()};
  const Process process = spawn(Tier::none, program);
  EXPECT_EQ(parent_of(process.pid()), ::getpid());
}

TEST_F(SpawnerTest, OneServesAllOfAProcess) {
  const pid_t first = spawner_pid();
  EXPECT_GT(first, 0);
  EXPECT_EQ(exit_status(shell("exit 0")), 0);
  EXPECT_EQ(spawner_pid(), first);
}

// The spawner closes the descriptors that it was sent while the program starts.
TEST_F(SpawnerTest, KeepsNothingOfTheHarnesss) {
  const auto deadline = std::chrono::steady_clock::now() + 30s;
  std::string held;
  do {
    held = held_by(spawner_pid());
  } while (held != "socket" && std::chrono::steady_clock::now() < deadline);
  EXPECT_EQ(held, "socket");
}

TEST_F(SpawnerTest, IsReplacedOnceItWasKilled) {
  const pid_t first = spawner_pid();
  ::kill(first, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(first), &info, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(exit_status(shell("exit 3")), 3 << 8);
  EXPECT_NE(spawner_pid(), first);
  EXPECT_EQ(::waitpid(first, nullptr, WNOHANG), -1) << "the first was not reaped";
}

TEST_F(SpawnerTest, AForkMakesItsOwn) {
  const pid_t parents = spawner_pid();
  const pid_t child = ::fork();
  if (child == 0) {
    if (spawner_pid() != -1) ::_exit(1);
    if (exit_status(shell("exit 0")) != 0) ::_exit(2);
    ::_exit(spawner_pid() == parents ? 3 : parent_of(spawner_pid()) == ::getpid() ? 0 : 4);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(exit_status(shell("exit 0")), 0);
  EXPECT_EQ(spawner_pid(), parents);
}

// Programs without cores of their own get those of the calling thread, as children would.
TEST_F(SpawnerTest, GivesTheCoresOfTheCallingThread) {
  cpu_set_t before, one;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  int core = 0;
  while (!CPU_ISSET(core, &before)) ++core;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  std::thread([&] {
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(exit_status(shell("test $(nproc) = 1")), 0);
  }).join();
}

TEST_F(SpawnerTest, SaysWhatIsTooMuch) {
  Program program = shell("exit 0");
  program.argv.emplace_back(200 << 10, 'x');
  EXPECT_NE(testing::error_of([&] { exit_status(program); }).find("at most"), std::string::npos);
  EXPECT_EQ(exit_status(shell("exit 0")), 0);
}

}  // namespace
}  // namespace assay::sandbox
