#include "measure/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace assay {
namespace {

class ProcStat : public ::testing::Test {
 protected:
  ~ProcStat() override { std::filesystem::remove(file_); }
  ProcessorTicks read(const std::string& text) {
    std::ofstream(file_) << text;
    return processor_ticks(file_);
  }
  const std::string file_ = ::testing::TempDir() + "assay_proc_stat_" + std::to_string(::getpid());
};

TEST_F(ProcStat, IdleAndWaitingTimeIsNeitherBusyNorStolen) {
  const ProcessorTicks t = read("cpu  100 20 3 4000 500 6 7 80 9 1\ncpu0 1 1 1 1 1 1 1 1 1 1\n");
  EXPECT_EQ(t.busy, 100u + 20 + 3 + 6 + 7);
  EXPECT_EQ(t.stolen, 80u);
}

TEST_F(ProcStat, WhatIsUnknownIsNothing) {
  for (const char* text : {"", "cpu 1 2 3\n", "intr 1 2 3 4 5 6 7 8 9\n"}) {
    EXPECT_EQ(read(text).busy + read(text).stolen, 0u) << text;
  }
  EXPECT_EQ(processor_ticks("/nonexistent/stat").busy, 0u);
}

TEST(StolenShare, IsThatOfTheTimeWanted) {
  EXPECT_DOUBLE_EQ(stolen_share({100, 10}, {130, 20}), 0.25);
  EXPECT_DOUBLE_EQ(stolen_share({100, 10}, {100, 20}), 1);
  EXPECT_DOUBLE_EQ(stolen_share({100, 10}, {100, 10}), 0);
  EXPECT_DOUBLE_EQ(stolen_share({100, 10}, {0, 0}), 0) << "unknown afterwards";
}

}  // namespace
}  // namespace assay
