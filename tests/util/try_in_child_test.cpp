#include "util/try_in_child.h"

#include <gtest/gtest.h>

#include <csignal>

namespace assay {
namespace {

TEST(TryInChild, SaysWhatTheChildFound) {
  EXPECT_TRUE(try_in_child([] { return true; }));
  EXPECT_FALSE(try_in_child([] { return false; }));
}

TEST(TryInChild, AChildThatDiesFoundNothing) {
  EXPECT_FALSE(try_in_child([] { return std::raise(SIGKILL) == 0; }));
}

TEST(TryInChild, WhatTheChildDoesStaysThere) {
  int touched = 0;
  EXPECT_TRUE(try_in_child([&] { return ++touched == 1; }));
  EXPECT_EQ(touched, 0);
}

}  // namespace
}  // namespace assay
