// Whatever the other side does with its end, our end answers at once.
#include "processes/channel.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace assay::processes {
namespace {

void make_waiting(int fd) {
  ASSERT_EQ(::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
}

TEST(Channel, CarriesBytesBothWays) {
  const Channel channel;
  char token = 0;
  EXPECT_TRUE(channel.send());
  EXPECT_EQ(::read(channel.theirs(), &token, 1), 1);
  EXPECT_EQ(channel.take(8), 0u);
  EXPECT_EQ(::write(channel.theirs(), "abc", 3), 3);
  EXPECT_EQ(channel.take(2), 2u);
  EXPECT_EQ(channel.take(2), 1u);
  EXPECT_EQ(channel.take(2), 0u) << "nothing is waiting";
}

TEST(Channel, SendsToOneWhoDoesNotReadUntilThereIsNoRoom) {
  const Channel channel;
  make_waiting(channel.ours());  // whatever flags the other side sets
  int sent = 0;
  while (channel.send()) ASSERT_LT(++sent, 10'000'000);
  EXPECT_GT(sent, 0);
  EXPECT_FALSE(channel.send());
}

// Only the other end can fill the reader's queue.
TEST(Channel, CannotBeFilledByItsReader) {
  const Channel channel;
  ASSERT_EQ(::fcntl(channel.theirs(), F_SETFL, O_NONBLOCK), 0);
  const std::string most(1 << 16, 'x');
  while (::write(channel.theirs(), most.data(), most.size()) > 0) {
  }
  EXPECT_TRUE(channel.send());
}

TEST(Channel, TakesNoMoreOfAFloodThanIsAskedFor) {
  const Channel channel(O_NONBLOCK);
  const std::string most(1 << 16, 'x');
  while (::write(channel.theirs(), most.data(), most.size()) > 0) {
  }
  std::string text = "so: ";
  channel.take(text, 5000);
  EXPECT_EQ(text.size(), 5004u);
  EXPECT_EQ(channel.take(2), 2u);
}

TEST(Channel, NeverMeetsTheEndOfAFile) {
  const Channel channel;
  const int copy = ::dup(channel.theirs());  // as another process would hold it
  EXPECT_EQ(::write(copy, "last", 4), 4);
  ::close(copy);
  std::string text;
  channel.take(text, 100);
  EXPECT_EQ(text, "last");
  pollfd entry{channel.ours(), POLLIN, 0};
  EXPECT_EQ(::poll(&entry, 1, 0), 0) << "no hang-up: the process is watched, not its files";
}

TEST(Channel, SurvivesAnEndThatIsShut) {
  const Channel channel;
  ASSERT_EQ(::shutdown(channel.theirs(), SHUT_RDWR), 0);
  EXPECT_FALSE(channel.send());  // and no SIGPIPE
  EXPECT_EQ(channel.take(2), 0u);
}

}  // namespace
}  // namespace assay::processes
