#include "util/file_lock.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "assay/error.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

class FileLockTest : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_ = fs::temp_directory_path() / ("assay-lock-" + std::to_string(::getpid()));
  fs::path path_ = folder_ / "lock";
};

TEST_F(FileLockTest, IsHeldByOneAndLeavesNothing) {
  {
    const FileLock held(path_);
    EXPECT_FALSE(FileLock::if_free(path_));
    EXPECT_TRUE(fs::exists(path_));
  }
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_TRUE(FileLock::if_free(path_));
}

TEST_F(FileLockTest, KeepsThreadsApart) {
  int inside = 0, most = 0;  // guarded only by the lock
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 200; ++i) {
          const FileLock lock(path_);
          most = std::max(most, ++inside);
          std::this_thread::yield();
          --inside;
        }
      });
    }
  }
  EXPECT_EQ(most, 1);
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(FileLockTest, DiesWithItsHolder) {
  const pid_t child = ::fork();
  if (child == 0) {
    new FileLock(path_);
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(fs::exists(path_)) << "nothing was left to be taken over";
  EXPECT_TRUE(FileLock::if_free(path_));
}

TEST_F(FileLockTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_THROW(FileLock(folder_ / "missing" / "lock"), Error);
}

}  // namespace
}  // namespace assay
