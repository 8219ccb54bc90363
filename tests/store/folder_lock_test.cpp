#include "store/folder_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/line_file.h"
#include "support/child_process.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace assay::store {
namespace {

using namespace std::chrono_literals;
using testing::ChildProcess;
using testing::error_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

TEST(FolderLock, ASoleWriterLocksNothing) {
  const TemporaryFolder folder;
  const FolderLock held(folder.path);
  EXPECT_EQ(error_of([&] { FolderLock(folder.path, 20ms, Writers::one); }), "no error");
  const TemporaryFolder untouched;
  const FolderLock none(untouched.path, 20ms, Writers::one);
  EXPECT_FALSE(std::filesystem::exists(untouched.path / ".lock"));
}

TEST(FolderLock, KeepsOtherProcessesOutAndDiesWithItsHolder) {
  const TemporaryFolder folder;
  ChildProcess holder([&](const ChildProcess& self) {
    const FolderLock lock(folder.path);
    self.signal();
    ::pause();
  });
  ASSERT_TRUE(holder.wait_for_signal());
  const std::string error = error_of([&] { FolderLock(folder.path, 20ms); });
  EXPECT_THAT(error, HasSubstr(folder.path.string()));
  EXPECT_THAT(error, HasSubstr("fuser"));
  holder.kill();
  EXPECT_EQ(error_of([&] { FolderLock(folder.path, 10s); }), "no error");
}

TEST(FolderLock, IsFreeOnceLetGoAlthoughAForkHasItsFile) {
  const TemporaryFolder folder;
  std::optional<FolderLock> lock(folder.path);
  ChildProcess fork([](const ChildProcess& self) {
    self.signal();
    ::pause();
  });
  ASSERT_TRUE(fork.wait_for_signal());
  lock.reset();
  EXPECT_EQ(error_of([&] { FolderLock(folder.path, 20ms); }), "no error");
}

// Each reads the file, lets the other run, and writes the number plus one: without the lock some
// increments are lost.
TEST(FolderLock, OnlyOneWritesAtATime) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path / "count";
  const auto count_up = [&](const ChildProcess&) {
    for (int i = 0; i < 100; ++i) {
      const FolderLock lock(folder.path);
      const std::size_t before = std::filesystem::exists(file) ? read_file(file).size() : 0;
      ::usleep(50);
      write_file_atomically(file, std::string(before + 1, 'x'));
    }
  };
  ChildProcess a(count_up), b(count_up);
  EXPECT_EQ(a.wait(), 0);
  EXPECT_EQ(b.wait(), 0);
  EXPECT_EQ(read_file(file).size(), 200u);
}

TEST(FolderLock, AFolderThatIsNotThereIsNamed) {
  EXPECT_THAT(error_of([] { FolderLock("/nonexistent/results"); }),
              HasSubstr("/nonexistent/results"));
}

}  // namespace
}  // namespace assay::store
