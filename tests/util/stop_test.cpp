#include "util/stop.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string>
#include <thread>

#include "assay/error.h"
#include "numerics/jobs.h"
#include "support/child_process.h"
#include "util/clock.h"

namespace assay {
namespace {

bool readable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 1;
}

// Runs `action` in a child process. Its exit status is 0 if every check holds.
int status_of(void (*action)()) {
  testing::ChildProcess child([action](testing::ChildProcess&) { action(); });
  return child.wait();
}

void require(bool condition) {
  if (!condition) ::_exit(9);
}

TEST(Stop, NobodyAsked) {
  EXPECT_EQ(stop_signal(), 0);
  EXPECT_NO_THROW(check_stop());
  EXPECT_EQ(stop_fd(), -1) << "not asked to listen";
}

TEST(Stop, WaitsToTheEndWhereNobodyAsks) {
  const double begin = steady_seconds();
  wait_or_stop(0.12);
  EXPECT_GE(steady_seconds() - begin, 0.12);
  wait_or_stop(0);
  wait_or_stop(-1);
}

TEST(Stop, ARequestEndsAWait) {
  EXPECT_EQ(status_of([] {
              stop_on_signals();
              std::thread asker([] {
                ::poll(nullptr, 0, 100);
                ::kill(::getpid(), SIGTERM);
              });
              bool stopped = false;
              try {
                wait_or_stop(600);
              } catch (const Stopped&) {
                stopped = true;
              }
              asker.join();
              require(stopped);
            }),
            0);
}

TEST(Stop, ASignalIsARequest) {
  EXPECT_EQ(status_of([] {
              stop_on_signals();
              require(!readable(stop_fd()));
              ::raise(SIGTERM);
              require(stop_signal() == SIGTERM && std::string(stop_signal_name()) == "SIGTERM");
              require(readable(stop_fd()) && readable(stop_fd()));
              try {
                check_stop();
                ::_exit(8);
              } catch (const Stopped&) {
              }
            }),
            0);
}

TEST(Stop, ASecondOneEndsTheProcessButNotInTheSameMoment) {
  EXPECT_EQ(status_of([] {
              stop_on_signals();
              ::raise(SIGINT);
              ::raise(SIGINT);
              require(stop_signal() == SIGINT);
              ::usleep(1000 * static_cast<unsigned>(kSameRequest.count() + 50));
              ::raise(SIGTERM);
            }),
            128 + SIGTERM);
}

// A child with two threads that both ask at the same moment, repeated two hundred times since the
// timing varies.
TEST(Stop, TwoThreadsAtOnceAreOneRequest) {
  for (int round = 0; round < 200; ++round) {
    ASSERT_EQ(status_of([] {
                ::close(STDERR_FILENO);  // otherwise two hundred copies of the same line
                stop_on_signals();
                std::atomic<int> waiting{2};
                const auto ask = [&waiting] {
                  --waiting;
                  while (waiting > 0) {
                  }
                  ::raise(SIGINT);
                };
                std::thread other(ask);
                ask();
                other.join();
                require(stop_signal() == SIGINT);
              }),
              0)
        << "round " << round;
  }
}

TEST(Stop, WhatIsIgnoredStaysIgnored) {
  EXPECT_EQ(status_of([] {
              ::signal(SIGHUP, SIG_IGN);
              stop_on_signals();
              ::raise(SIGHUP);
              require(stop_signal() == 0);
              restore_stop_signals();
              ::raise(SIGHUP);
            }),
            0);
}

TEST(Stop, RestoredTheyEndTheProcess) {
  EXPECT_EQ(status_of([] {
              stop_on_signals();
              restore_stop_signals();
              ::raise(SIGTERM);
            }),
            -1);
}

TEST(Stop, AForkedChildDoesNotAnswerForItsParent) {
  EXPECT_EQ(status_of([] {
              stop_on_signals();
              testing::ChildProcess child([](testing::ChildProcess&) { ::raise(SIGINT); });
              require(child.wait() == 0);
              require(!readable(stop_fd()));
            }),
            0);
}

TEST(Stop, JobsThatFailThenWereStopped) {
  EXPECT_EQ(status_of([] {
              stop_on_signals();
              try {
                for_each_job(4, 2, [](std::size_t) {
                  ::raise(SIGINT);
                  throw Error("a worker died");
                });
              } catch (const Stopped&) {
                return;
              }
              ::_exit(8);
            }),
            0);
}

}  // namespace
}  // namespace assay
