#include "attack/in_child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <thread>

namespace assay::attack {
namespace {

Child::State ended(Child& child) {
  Child::State state;
  while ((state = child.look()) == Child::State::running)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return state;
}

TEST(Child, ReturnsWhatTheWorkSays) {
  Child child([] { return std::string(100000, 'x'); }, 60);
  EXPECT_EQ(ended(child), Child::State::done);
  EXPECT_EQ(child.said(), std::string(100000, 'x'));
}

TEST(Child, ASignalIsADeath) {
  Child child(
      []() -> std::string {
        ::raise(SIGKILL);
        return "";
      },
      60);
  EXPECT_EQ(ended(child), Child::State::died);
  EXPECT_EQ(child.said(), "Killed");
}

TEST(Child, SoIsAnException) {
  Child child([]() -> std::string { throw std::runtime_error("no"); }, 60);
  EXPECT_EQ(ended(child), Child::State::died);
  EXPECT_EQ(child.said(), "no");
}

TEST(Child, WhoeverTakesTooLongHangs) {
  Child child(
      []() -> std::string {
        for (;;) ::pause();
      },
      0.05);
  EXPECT_EQ(ended(child), Child::State::hung);
  EXPECT_GE(child.seconds(), 0.05);
}

// Whether every process that held the pipe's other end has closed it.
bool is_closed(int fd) {
  pollfd one{fd, POLLIN, 0};
  return ::poll(&one, 1, 10000) == 1 && (one.revents & POLLHUP) != 0;
}

TEST(Child, AllThatItStartedEndsWithIt) {
  int ends[2], ready[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  {
    Child child(
        [&]() -> std::string {
          if (::fork() == 0) {
            ::setsid();  // out of reach of a signal to the group
            if (::fork() == 0) {
              ::setsid();
              (void)!::write(ready[1], "x", 1);
            }
          }
          for (;;) ::pause();
        },
        0.5);
    ::close(ends[1]);
    char told = 0;
    ASSERT_EQ(::read(ready[0], &told, 1), 1);  // the grandchild is alive
    EXPECT_EQ(ended(child), Child::State::hung);
    EXPECT_TRUE(is_closed(ends[0]));
  }
  ::close(ends[0]);
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(Child, SoItDoesWhenNobodyWantsItAnyMore) {
  int ends[2], ready[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  {
    const Child child(
        [&]() -> std::string {
          if (::fork() == 0) (void)!::write(ready[1], "x", 1);
          for (;;) ::pause();
        },
        60);
    ::close(ends[1]);
    char told = 0;
    ASSERT_EQ(::read(ready[0], &told, 1), 1);
  }
  EXPECT_TRUE(is_closed(ends[0]));
  for (const int fd : {ends[0], ready[0], ready[1]}) ::close(fd);
}

}  // namespace
}  // namespace assay::attack
