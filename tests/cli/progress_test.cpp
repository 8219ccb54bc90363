#include "cli/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <sstream>
#include <thread>
#include <vector>

namespace assay::cli {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr const char* kClear = "\r\033[K";

// --- in a pipe
// --------------------------------------------------------------------------------------

class Pipe : public ::testing::Test {
 protected:
  ProgressText text_{3, false, 80, 100};
};

TEST_F(Pipe, LinesAreWrittenAtOnceAndOnce) {
  text_.note("3 submissions");
  text_.finished("a done");
  EXPECT_EQ(text_.due(101), "3 submissions\n[1/3] a done\n");
  EXPECT_EQ(text_.due(101), "");
}

TEST_F(Pipe, AfterAQuietWhileItSaysWhatIsBeingDone) {
  text_.begin("checking a", 110);
  EXPECT_EQ(text_.due(100 + ProgressText::kQuiet - 0.1), "");
  EXPECT_EQ(text_.due(130), "[0/3] 0:30 checking a (0:20)\n");
  EXPECT_EQ(text_.due(131), "");
  text_.note("x");
  EXPECT_EQ(text_.due(150), "x\n");
  EXPECT_EQ(text_.due(170), "") << "a line of any kind breaks the silence";
  EXPECT_EQ(text_.due(176), "[0/3] 1:16 checking a (1:06)\n");
}

TEST_F(Pipe, ItIsNeverSilentForHalfAMinute) {
  text_.begin("timing a", 100);
  double last = 100;
  for (double now = 100; now < 400; now += 1) {
    if (!text_.due(now).empty()) last = now;
    EXPECT_LT(now - last, 30);
  }
}

TEST_F(Pipe, AnActivityThatIsOverIsNotShown) {
  const std::size_t first = text_.begin("checking a", 100);
  text_.begin("checking b", 105);
  text_.end(first);
  EXPECT_EQ(text_.due(130), "[0/3] 0:30 checking b (0:25)\n");
}

TEST_F(Pipe, ManyActivitiesAreCounted) {
  for (const char* what : {"a", "b", "c", "d", "e"}) text_.begin(what, 100);
  EXPECT_THAT(text_.due(130), EndsWith(" a (0:30), b (0:30), c (0:30), and 2 more\n"));
}

TEST_F(Pipe, TheLastLinesAreNotLost) {
  text_.finished("a done");
  EXPECT_EQ(text_.last(), "[1/3] a done\n");
}

// --- on a terminal
// ----------------------------------------------------------------------------------

TEST(Terminal, TheStatusIsRewrittenWithTheTime) {
  ProgressText text(3, true, 80, 100);
  text.begin("checking a", 100);
  EXPECT_EQ(text.due(101), std::string(kClear) + "[0/3] 0:01 checking a (0:01)");
  EXPECT_EQ(text.due(102), std::string(kClear) + "[0/3] 0:02 checking a (0:02)");
}

TEST(Terminal, LinesStandAboveTheStatus) {
  ProgressText text(3, true, 80, 100);
  text.finished("a done");
  EXPECT_EQ(text.due(101), std::string(kClear) + "[1/3] a done\n[1/3] 0:01");
}

TEST(Terminal, TheStatusFitsInOneLine) {
  ProgressText text(3, true, 20, 100);
  text.begin("checking a submission with a long name", 100);
  EXPECT_EQ(text.due(101).size(), std::string(kClear).size() + 19);
}

TEST(Terminal, NothingOfTheStatusIsLeftAtTheEnd) {
  ProgressText text(3, true, 80, 100);
  text.begin("checking a", 100);
  EXPECT_EQ(text.last(), kClear);
}

// --- the writer
// -------------------------------------------------------------------------------------

struct Written {
  std::mutex mutex;
  std::vector<std::string> texts;
  std::vector<std::thread::id> writers;

  Progress::Output output(bool terminal) {
    Progress::Output output;
    output.terminal = terminal;
    output.refresh = std::chrono::milliseconds(2);
    output.write = [this](const std::string& text) {
      const std::lock_guard lock(mutex);
      texts.push_back(text);
      writers.push_back(std::this_thread::get_id());
    };
    return output;
  }
  std::size_t count() {
    const std::lock_guard lock(mutex);
    return texts.size();
  }
};

TEST(Progress, TheStatusIsRefreshedWhileOneStepLasts) {
  Written written;
  Progress progress(1, written.output(true));
  const auto activity = progress.begin("timing a");
  while (written.count() < 5) std::this_thread::yield();
  const std::lock_guard lock(written.mutex);
  EXPECT_THAT(written.texts.back(), HasSubstr("timing a"));
}

TEST(Progress, OneThreadWritesWholeLinesWhoeverSpeaks) {
  constexpr int kThreads = 4, kLines = 200;
  Written written;
  {
    Progress progress(kThreads * kLines, written.output(false));
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < kLines; ++i) {
          const auto activity = progress.begin("checking");
          progress.finished("done");
        }
      });
    }
  }
  EXPECT_THAT(written.writers, Each(written.writers.front()));
  EXPECT_NE(written.writers.front(), std::this_thread::get_id());
  std::string all;
  for (const std::string& text : written.texts) all += text;
  std::istringstream in(all);
  int n = 0;
  for (std::string line; std::getline(in, line); ++n)
    EXPECT_EQ(line, "[" + std::to_string(n + 1) + "/800] done");
  EXPECT_EQ(n, kThreads * kLines);
}

TEST(Progress, WhatWasSaidLastIsWrittenBeforeItIsGone) {
  for (int i = 0; i < 50; ++i) {
    Written written;
    {
      Progress progress(1, written.output(false));
      progress.finished("a done");
    }
    ASSERT_EQ(written.texts, (std::vector<std::string>{"[1/1] a done\n"}));
  }
}

}  // namespace
}  // namespace assay::cli
