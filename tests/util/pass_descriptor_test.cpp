#include "util/pass_descriptor.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <vector>

namespace assay {
namespace {

class PassDescriptor : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends_), 0); }
  void TearDown() override {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

  // Whether the descriptor is the end of the pipe that is written to.
  void expect_writes_to(const Pipe& pipe, int fd) {
    ASSERT_EQ(::write(fd, "x", 1), 1);
    char byte = 0;
    ASSERT_EQ(::read(pipe.read.get(), &byte, 1), 1);
    EXPECT_EQ(byte, 'x');
  }

  int ends_[2] = {-1, -1};
};

TEST_F(PassDescriptor, OneArrivesAsAnother) {
  const Pipe pipe = make_pipe();
  ASSERT_TRUE(pass_descriptor(ends_[0], pipe.write.get()));
  const Fd taken = take_descriptor(ends_[1]);
  ASSERT_TRUE(taken);
  EXPECT_NE(taken.get(), pipe.write.get());
  expect_writes_to(pipe, taken.get());
  EXPECT_EQ(::fcntl(taken.get(), F_GETFD), FD_CLOEXEC);
}

TEST_F(PassDescriptor, WhereNoneIsWaitingNothingIsTaken) {
  EXPECT_FALSE(take_descriptor(ends_[1]));
}

TEST_F(PassDescriptor, SeveralArriveInOrderWithTheirBytes) {
  const Pipe first = make_pipe(), second = make_pipe();
  const std::vector<std::byte> sent(1000, std::byte{7});
  const int fds[] = {first.write.get(), second.write.get()};
  ASSERT_TRUE(pass_descriptors(ends_[0], sent, fds));
  std::vector<std::byte> received(2000);
  int taken[3] = {-1, -1, -1};
  const Passed passed = receive_descriptors(ends_[1], received, taken);
  EXPECT_TRUE(passed.whole);
  ASSERT_EQ(passed.bytes, sent.size());
  received.resize(passed.bytes);
  EXPECT_EQ(received, sent);
  ASSERT_EQ(passed.descriptors, 2u);
  const Fd one(taken[0]), other(taken[1]);
  expect_writes_to(first, one.get());
  expect_writes_to(second, other.get());
}

TEST_F(PassDescriptor, SaysWhatFoundNoRoom) {
  const Pipe pipe = make_pipe();
  const int fds[] = {pipe.write.get(), pipe.write.get()};
  const std::vector<std::byte> sent(10);
  std::byte byte{};
  int fd = -1;
  ASSERT_TRUE(pass_descriptors(ends_[0], sent, fds));
  const Passed passed = receive_descriptors(ends_[1], {&byte, 1}, {&fd, 1});
  EXPECT_FALSE(passed.whole);
  EXPECT_EQ(passed.descriptors, 1u);
  ::close(fd);
}

TEST_F(PassDescriptor, SaysThatTheOtherEndIsClosed) {
  const Pipe pipe = make_pipe();
  ::close(ends_[1]);
  EXPECT_FALSE(pass_descriptor(ends_[0], pipe.write.get()));
  EXPECT_EQ(errno, EPIPE);
  ends_[1] = ::dup(ends_[0]);
}

TEST_F(PassDescriptor, OneThatCannotBeOpenedIsNotTakenForNone) {
  const Pipe pipe = make_pipe();
  ASSERT_TRUE(pass_descriptor(ends_[0], pipe.write.get()));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_THROW(take_descriptor(ends_[1]), TransientFault);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
}

}  // namespace
}  // namespace assay
