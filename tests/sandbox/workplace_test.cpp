#include "sandbox/workplace.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "util/files.h"

namespace assay::sandbox {
namespace {

namespace fs = std::filesystem;

class WorkplaceTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(home_); }
  void TearDown() override { fs::remove_all(home_); }

  std::size_t folders() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(home_), fs::directory_iterator()));
  }

  // Starts a process that makes a workplace here and dies at once.
  void leave_one_behind() {
    const pid_t child = ::fork();
    if (child == 0) {
      new Workplace(Tier::none, home_);
      ::_exit(0);
    }
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  }

  fs::path home_ = fs::temp_directory_path() / ("assay-workplace-" + std::to_string(::getpid()));
};

TEST_F(WorkplaceTest, LiesInItsHomeAndGoesAtTheEnd) {
  {
    const Workplace one(Tier::namespaces, home_), other(Tier::namespaces, home_);
    EXPECT_EQ(one.path().parent_path(), fs::canonical(home_));
    EXPECT_NE(one.path(), other.path());
    write_file_atomically(one.path() / "file", "x");
  }
  EXPECT_EQ(folders(), 0u);
}

TEST_F(WorkplaceTest, ThatOfAKilledProcessGoesWithTheNext) {
  const Workplace mine(Tier::none, home_);
  leave_one_behind();
  EXPECT_EQ(folders(), 2u);
  const Workplace next(Tier::none, home_);
  EXPECT_EQ(folders(), 2u);
  EXPECT_TRUE(fs::exists(mine.path()));
  EXPECT_TRUE(fs::exists(next.path()));
}

TEST_F(WorkplaceTest, WhatOthersCannotEnterIsOutOfReachOfAnotherUser) {
  fs::permissions(home_, fs::perms(0700));
  fs::create_directory(home_ / "below");
  EXPECT_EQ(why_out_of_reach(Tier::namespaces, home_ / "below"), "");
  EXPECT_EQ(why_out_of_reach(Tier::none, home_ / "below"), "");
  const std::string why = why_out_of_reach(Tier::landlock, home_ / "below");
  if (::geteuid() != 0) {
    EXPECT_EQ(why, "");
    return;
  }
  EXPECT_EQ(why, fs::canonical(home_).string() + " is closed to other users");
  const Workplace elsewhere(Tier::landlock, home_ / "below");
  EXPECT_EQ(why_out_of_reach(Tier::landlock, elsewhere.path()), "");
  EXPECT_TRUE(fs::is_empty(home_ / "below"));
}

TEST_F(WorkplaceTest, AFolderThatIsNotThereIsOutOfReach) {
  EXPECT_NE(why_out_of_reach(Tier::namespaces, home_ / "missing"), "");
}

}  // namespace
}  // namespace assay::sandbox
