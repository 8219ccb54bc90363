#include "util/transient_fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <string>

#include "util/fd.h"

namespace assay {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// The exception that is thrown for a system error.
std::string thrown_for(int error, bool& passes) {
  try {
    errno = error;
    throw_errno("cannot fork");
  } catch (const TransientFault& e) {
    passes = true;
    return e.what();
  } catch (const Error& e) {
    passes = false;
    return e.what();
  }
}

TEST(TransientFault, IsWhatOthersMayEndByGivingBackWhatTheyHold) {
  for (const int error : {EAGAIN, ENOMEM, EMFILE, ENFILE, EBUSY, ENOSPC}) {
    bool passes = false;
    EXPECT_THAT(thrown_for(error, passes), StartsWith("cannot fork: ")) << error;
    EXPECT_TRUE(passes) << error;
    EXPECT_TRUE(can_pass(error)) << error;
  }
}

TEST(TransientFault, IsNothingThatWouldComeAgain) {
  for (const int error : {ENOENT, EACCES, EPERM, EINVAL, EROFS}) {
    bool passes = true;
    EXPECT_THAT(thrown_for(error, passes), StartsWith("cannot fork: ")) << error;
    EXPECT_FALSE(passes) << error;
    EXPECT_FALSE(can_pass(error)) << error;
  }
}

TEST(TransientFault, TellsTheRemedyToo) {
  bool passes = false;
  EXPECT_THAT(thrown_for(EMFILE, passes), HasSubstr("raise the limit on open files"));
}

TEST(TransientFault, ComesWithPipesForWhichThereAreNoDescriptorsNow) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{3, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  bool passes = false;
  try {
    make_pipe();
  } catch (const TransientFault&) {
    passes = true;
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(passes);
}

}  // namespace
}  // namespace assay
