#include "processes/worker_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

namespace assay::processes {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

// Prints as a submission would; false if there is no more room.
bool print(const WorkerText& text, const std::string& what) {
  return ::send(text.theirs(), what.data(), what.size(), MSG_DONTWAIT) ==
         static_cast<ssize_t>(what.size());
}

TEST(WorkerText, KeepsWhatWasPrintedInItsOrder) {
  WorkerText text;
  EXPECT_TRUE(text.take());
  EXPECT_EQ(text.kept(), "");
  ASSERT_TRUE(print(text, "one "));
  EXPECT_TRUE(text.take());
  ASSERT_TRUE(print(text, "two"));
  EXPECT_TRUE(text.take());
  EXPECT_EQ(text.kept(), "one two");
}

TEST(WorkerText, MoreThanTheLimitIsFoundAndNotKept) {
  WorkerText text;
  const std::string piece(1 << 12, 'x');
  for (std::size_t sent = 0; sent < WorkerText::kLimit; sent += piece.size()) {
    ASSERT_TRUE(print(text, piece));
    ASSERT_TRUE(text.take()) << sent;
  }
  ASSERT_TRUE(print(text, piece));
  EXPECT_FALSE(text.take());
  EXPECT_THAT(text.kept(), SizeIs(WorkerText::kLimit + 1));
}

TEST(WorkerText, ANoteTellsTheEnd) {
  WorkerText text;
  EXPECT_EQ(text.note(), "");
  ASSERT_TRUE(print(text, "first" + std::string(400, '.') + "\nlast"));
  text.take();
  EXPECT_THAT(text.note(), StartsWith("; its output ends: "));
  EXPECT_THAT(text.note(), HasSubstr("last"));
  EXPECT_THAT(text.note(), Not(HasSubstr("first")));
}

}  // namespace
}  // namespace assay::processes
