#include "attack/in_child.h"

#include <gtest/gtest.h>
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

}  // namespace
}  // namespace assay::attack
