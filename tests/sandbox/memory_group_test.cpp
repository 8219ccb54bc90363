#include "sandbox/memory_group.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "util/files.h"

namespace assay::sandbox {
namespace {
namespace fs = std::filesystem;

// A tree of groups made of plain files.
class FindMemoryGroups : public ::testing::Test {
 protected:
  FindMemoryGroups() {
    std::string name = (fs::temp_directory_path() / "assay-groups-XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~FindMemoryGroups() override { fs::remove_all(root_); }

  void put(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    write_file_atomically(root_ / path, text);
  }

  static constexpr const char* kTwo =
      "25 24 0:22 / /proc rw - proc proc rw\n"
      "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
  static constexpr const char* kOne =
      "31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
      "32 24 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
  fs::path root_;
};

TEST_F(FindMemoryGroups, OfVersionTwoInOurOwn) {
  put("sys/fs/cgroup/user/run/cgroup.subtree_control", "cpu memory pids\n");
  put("sys/fs/cgroup/user/memory.max", "1000000\n");
  put("sys/fs/cgroup/user/run/memory.max", "max\n");
  const MemoryGroups groups = find_memory_groups(kTwo, "0::/user/run\n", root_);
  EXPECT_EQ(groups.version, 2) << groups.why_not;
  EXPECT_EQ(groups.folder, root_ / "sys/fs/cgroup/user/run");
  EXPECT_EQ(groups.limit_bytes, 1000000u);
}

TEST_F(FindMemoryGroups, OfVersionTwoInTheOneAbove) {
  put("sys/fs/cgroup/user/cgroup.subtree_control", "memory\n");
  put("sys/fs/cgroup/user/run/cgroup.subtree_control", "\n");
  const MemoryGroups groups = find_memory_groups(kTwo, "0::/user/run\n", root_);
  EXPECT_EQ(groups.version, 2) << groups.why_not;
  EXPECT_EQ(groups.folder, root_ / "sys/fs/cgroup/user");
}

TEST_F(FindMemoryGroups, OfVersionOneWhereTwoHasNoMemory) {
  put("sys/fs/cgroup/cgroup.subtree_control", "hugetlb\n");
  put("sys/fs/cgroup/memory/run/memory.limit_in_bytes", "5000\n");
  const MemoryGroups groups =
      find_memory_groups(std::string(kTwo) + kOne, "4:memory:/run\n3:cpu:/\n0::/\n", root_);
  EXPECT_EQ(groups.version, 1) << groups.why_not;
  EXPECT_EQ(groups.folder, root_ / "sys/fs/cgroup/memory/run");
  EXPECT_EQ(groups.limit_bytes, 5000u);
}

TEST_F(FindMemoryGroups, SaysWhyThereAreNone) {
  EXPECT_EQ(find_memory_groups("", "", root_).why_not, "no memory cgroups are mounted");
  put("sys/fs/cgroup/cgroup.subtree_control", "cpu\n");
  const MemoryGroups groups = find_memory_groups(kTwo, "0::/\n", root_);
  EXPECT_EQ(groups.version, 0);
  EXPECT_NE(groups.why_not.find("does not hand the memory controller on"), std::string::npos);
}

// The mount shows only a part of the tree, which does not contain our own group.
TEST_F(FindMemoryGroups, OutsideOfWhatIsMountedAreNone) {
  const char* part = "30 24 0:26 /other /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  EXPECT_EQ(find_memory_groups(part, "0::/user\n", root_).version, 0);
}

class MemoryGroupTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (memory_groups().version == 0) GTEST_SKIP() << memory_groups().why_not;
  }

  // Starts a child in the group that touches that many bytes; returns how it ended.
  static int touch(const MemoryGroup& group, std::size_t bytes) {
    const pid_t child = ::fork();
    if (child == 0) {
      if (::write(group.join_fd(), "0", 1) != 1) ::_exit(77);
      void* p = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (p == MAP_FAILED) ::_exit(78);
      std::memset(p, 1, bytes);
      ::munmap(p, bytes);
      ::_exit(0);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }
};

TEST_F(MemoryGroupTest, KnowsThePeakOfWhatIsGone) {
  constexpr std::size_t kBytes = 32 << 20;
  const auto group = MemoryGroup::make(memory_groups(), 256 << 20);
  ASSERT_NE(group, nullptr);
  EXPECT_EQ(touch(*group, kBytes), 0);
  ASSERT_TRUE(group->peak().has_value());
  EXPECT_GE(*group->peak(), kBytes);
  EXPECT_LT(group->usage().value_or(kBytes), kBytes / 2);
  EXPECT_FALSE(group->ran_out());
}

TEST_F(MemoryGroupTest, EndsWhoTakesTooMuchAndSaysSo) {
  const auto group = MemoryGroup::make(memory_groups(), 32 << 20);
  ASSERT_NE(group, nullptr);
  const int status = touch(*group, 128 << 20);
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_TRUE(group->ran_out());
}

TEST_F(MemoryGroupTest, LeavesNothingBehind) {
  fs::path folder;
  {
    const auto group = MemoryGroup::make(memory_groups(), 32 << 20);
    ASSERT_NE(group, nullptr);
    folder = group->folder();
    EXPECT_TRUE(fs::exists(folder));
    touch(*group, 1 << 20);
  }
  EXPECT_FALSE(fs::exists(folder));
}

TEST_F(MemoryGroupTest, OfAKilledHarnessIsRemovedByTheNext) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t harness = ::fork();
  if (harness == 0) {
    const auto group = MemoryGroup::make(memory_groups(), 32 << 20);
    const std::string name = group == nullptr ? "" : group->folder().string();
    if (::write(ends[1], name.data(), name.size()) < 0) ::_exit(1);
    ::close(ends[1]);
    ::pause();
  }
  ::close(ends[1]);
  char name[4096] = {};
  const ssize_t n = ::read(ends[0], name, sizeof name - 1);
  remove_abandoned_groups(memory_groups().folder);
  EXPECT_TRUE(n > 0 && fs::exists(name)) << "a group in use was removed";
  ::kill(harness, SIGKILL);
  ::waitpid(harness, nullptr, 0);
  ::close(ends[0]);
  EXPECT_TRUE(fs::exists(name));
  remove_abandoned_groups(memory_groups().folder);
  EXPECT_FALSE(fs::exists(name));
}

}  // namespace
}  // namespace assay::sandbox
