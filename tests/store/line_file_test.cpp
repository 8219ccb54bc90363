#include "store/line_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>

#include "support/child_process.h"
#include "support/error_of.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace assay::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LineFile : public ::testing::Test {
 protected:
  void write(const std::string& text) const { write_file_atomically(file, text); }
  testing::TemporaryFolder folder;
  std::filesystem::path file = folder.path / "lines";
};

TEST_F(LineFile, LinesComeBackInOrder) {
  EXPECT_THAT(read_lines(file).lines, IsEmpty());
  EXPECT_EQ(append_line(file, "one"), 4u);
  EXPECT_EQ(append_line(file, ""), 5u);
  EXPECT_EQ(append_line(file, "three"), 11u);
  const Lines all = read_lines(file);
  EXPECT_THAT(all.lines, ElementsAre("one", "", "three"));
  EXPECT_EQ(all.end, 11u);
}

TEST_F(LineFile, ReadingGoesOnWhereItEnded) {
  append_line(file, "one");
  const Lines first = read_lines(file);
  EXPECT_THAT(read_lines(file, first.end).lines, IsEmpty());
  append_line(file, "two");
  EXPECT_THAT(read_lines(file, first.end).lines, ElementsAre("two"));
}

TEST_F(LineFile, ATornLineIsLeftOutAndDroppedByTheNext) {
  for (const std::size_t torn : {1u, 100u, 5000u, 10000u}) {
    write("whole\n" + std::string(torn, 't'));
    const Lines read = read_lines(file);
    EXPECT_THAT(read.lines, ElementsAre("whole"));
    EXPECT_EQ(read.end, 6u);
    append_line(file, "next");
    EXPECT_EQ(read_file(file), "whole\nnext\n") << torn;
  }
}

TEST_F(LineFile, NothingButATornLineIsAnEmptyFile) {
  write("torn");
  EXPECT_THAT(read_lines(file).lines, IsEmpty());
  append_line(file, "first");
  EXPECT_EQ(read_file(file), "first\n");
}

// A limit on file sizes simulates a full disk: the first half of the line still fits.
TEST_F(LineFile, WithoutRoomTheFileStaysAsItWas) {
  append_line(file, "one");
  testing::ChildProcess full([&](const testing::ChildProcess&) {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string error = testing::error_of([&] { append_line(file, std::string(2000, 'x')); });
    if (error.find(file.string()) == std::string::npos) ::_exit(3);
  });
  EXPECT_EQ(full.wait(), 0);
  EXPECT_EQ(read_file(file), "one\n");
}

TEST_F(LineFile, AFolderThatIsNotThereIsNamed) {
  EXPECT_THAT(testing::error_of([] { append_line("/nonexistent/x", "y"); }),
              HasSubstr("/nonexistent/x"));
}

}  // namespace
}  // namespace assay::store
