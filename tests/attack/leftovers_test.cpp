#include "attack/leftovers.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>

#include "sandbox/memory_group.h"
#include "sandbox/owner_tag.h"

namespace assay::attack {
namespace {
namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kBrief = 0.01;

TEST(Leftovers, NothingIsLeftOfNothing) {
  const Leftovers before({});
  EXPECT_THAT(before.since(kBrief), IsEmpty());
}

TEST(Leftovers, AMarkedFileIsWhereverItLies) {
  const Leftovers before({});
  const fs::path file =
      fs::path("/tmp") / (std::string(kMark) + "-test-" + std::to_string(::getpid()));
  std::ofstream(file) << "x";
  const auto left = before.since(kBrief);
  fs::remove(file);
  EXPECT_THAT(left, Contains("file " + file.string()));
}

TEST(Leftovers, HalfWrittenFilesCountInFoldersOfOnesOwn) {
  std::string folder = (fs::temp_directory_path() / "leftovers_test-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const Leftovers before({folder});
  std::ofstream(folder + "/entry.so") << "x";  // a cache entry may stay
  EXPECT_THAT(before.since(kBrief), IsEmpty());
  std::ofstream(folder + "/entry.so.7.tmp") << "x";
  const std::string workplace = folder + "/assay-work-" + sandbox::owner_tag() + "abc";
  fs::create_directory(workplace);
  fs::create_directory(folder + "/assay-work-1-abc");  // of another harness
  EXPECT_EQ(before.since(kBrief).size(), 2u);
  const int used = ::open(workplace.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(::flock(used, LOCK_EX), 0);  // held by another running process
  EXPECT_EQ(before.since(kBrief).size(), 1u);
  ::close(used);
  fs::remove_all(folder);
}

TEST(Leftovers, ALivingChildCountsAndAnEndedOneDoesNot) {
  const Leftovers before({});
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_THAT(before.since(kBrief), Contains(HasSubstr("process " + std::to_string(pid))));
  ::kill(pid, SIGKILL);
  EXPECT_THAT(before.since(5), IsEmpty());
}

TEST(Leftovers, OfMemoryGroupsOnlyOnesOwn) {
  const sandbox::MemoryGroups& groups = sandbox::memory_groups();
  if (groups.version == 0) GTEST_SKIP() << groups.why_not;
  const Leftovers before({});
  const fs::path mine = groups.folder / ("assay-worker-" + sandbox::owner_tag() + "test"),
                 others = groups.folder / "assay-worker-1-test";
  fs::create_directory(mine);
  fs::create_directory(others);
  const auto left = before.since(kBrief);
  fs::remove(mine);
  fs::remove(others);
  EXPECT_THAT(left, ::testing::ElementsAre("cgroup " + mine.string()));
}

TEST(Leftovers, SharedMemoryOfSystemV) {
  const Leftovers before({});
  const int id = ::shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
  if (id < 0) GTEST_SKIP() << "no shared memory here";
  const auto left = before.since(kBrief);
  ::shmctl(id, IPC_RMID, nullptr);
  EXPECT_THAT(left, Contains("System V shm " + std::to_string(id)));
}

}  // namespace
}  // namespace assay::attack
