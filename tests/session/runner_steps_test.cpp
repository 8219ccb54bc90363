#include "session/runner_steps.h"

#include <gtest/gtest.h>

namespace assay::session {
namespace {

BoardRow row(const std::string& model, const std::string& challenge, double seconds,
             Device device = Device::cpu) {
  BoardRow row;
  row.key = {model, challenge, "", device};
  row.seconds = seconds;
  return row;
}

Scoreboard board_of(const std::vector<BoardRow>& rows) {
  Scoreboard board;
  for (const BoardRow& r : rows) board.entries[r.key] = r;
  return board;
}

Submission submission(const std::string& model, const std::string& challenge) {
  Submission s;
  s.model = model;
  s.challenge = challenge;
  return s;
}

TEST(ExpectedSeconds, IsWhatItTookTheLastTime) {
  const Scoreboard board = board_of({row("m", "a", 3), row("n", "a", 8), row("m", "b", 9)});
  EXPECT_EQ(expected_seconds(board, submission("m", "a"), 0), 3);
}

TEST(ExpectedSeconds, OfAnUnknownAnswerIsTheLongestOfTheOthers) {
  const Scoreboard board =
      board_of({row("m", "a", 3), row("n", "a", 8), row("k", "a", 50, Device::sim)});
  EXPECT_EQ(expected_seconds(board, submission("new", "a"), 0), 8);
}

TEST(ExpectedSeconds, AnUnknownChallengeTakesLongestAndWhatMustBeCompiledStillCounts) {
  const Scoreboard board = board_of({row("m", "a", 300)});
  EXPECT_GT(expected_seconds(board, submission("m", "b"), 0),
            expected_seconds(board, submission("m", "a"), 0));
  EXPECT_GT(expected_seconds({}, submission("m", "b"), 100'000),
            expected_seconds({}, submission("m", "b"), 0));
}

TEST(ExpectedSeconds, WhatMustBeCompiledTakesItsTime) {
  const Scoreboard board = board_of({row("m", "a", 3)});
  EXPECT_GT(expected_seconds(board, submission("m", "a"), 200'000),
            expected_seconds(board, submission("m", "a"), 100'000) + 5);
}

}  // namespace
}  // namespace assay::session
