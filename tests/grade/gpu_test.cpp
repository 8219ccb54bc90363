#include "grade/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "util/files.h"

namespace assay {
namespace {

using testing::HasSubstr;

// Round figures: 10 multiprocessors at 1 GHz, 1 TB/s.
Gpu round_gpu() {
  return {"round", "made up", 10, 1e9, 1e12, 1e10, 1e12, 1e14, 128, 64, 2, 16, 1e-6};
}

SimulatedWork one_launch(std::uint64_t blocks) {
  SimulatedWork work;
  work.counters.launches = 1;
  work.counters.blocks = blocks;
  return work;
}

TEST(Gpu, BringsTheDataSheetsThatItNames) {
  EXPECT_THAT(gpu_names(), testing::ElementsAre("a100", "h200", "rtx4090"));
  EXPECT_EQ(gpu(kDefaultGpu).name, "H200");
  EXPECT_DOUBLE_EQ(gpu("h200").memory_bytes_per_s, 4.8e12);
  for (const std::string& name : gpu_names()) {
    // fp32 peak = 2 * lanes * multiprocessors * clock: the sheet agrees with itself.
    const Gpu& g = gpu(name);
    EXPECT_NEAR(2 * g.fp32_lanes * g.multiprocessors * g.clock_hz / g.fp32_flops, 1, 0.01) << name;
  }
}

TEST(Gpu, UnknownNamesAndBrokenSheetsAreErrors) {
  EXPECT_THROW(gpu("h100x"), Error);
  EXPECT_THROW(parse_gpu("{}"), Error);
  EXPECT_THROW(parse_gpu("not json"), Error);
  try {
    gpu("h100x");
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("rtx4090"));
  }
}

TEST(ModelledTime, CountsMemoryBySectorsSpillsAndCopiesWithin) {
  SimulatedWork work = one_launch(10);
  work.counters.global_load_sectors = 1'000'000;
  work.counters.global_store_sectors = 500'000;
  work.counters.local_load_bytes = 1'000'000;
  work.within_bytes = 1'000'000;
  const ModelledTime t = modelled_time(work, round_gpu());
  EXPECT_DOUBLE_EQ(t.memory, 50e-6);  // 48 MB of sectors and 2 MB
  EXPECT_DOUBLE_EQ(t.total(), 51e-6);
  EXPECT_STREQ(t.bound(), "memory");
}

TEST(ModelledTime, SlowestPipeAndIssueByHand) {
  SimulatedWork work = one_launch(10);
  work.counters.instructions = 4'000'000;
  work.counters.special = 1'000'000;
  work.counters.fp64 = 100'000;
  const ModelledTime t = modelled_time(work, round_gpu());
  EXPECT_DOUBLE_EQ(t.issue, 100e-6);       // 4 a clock on each of 10
  EXPECT_DOUBLE_EQ(t.arithmetic, 200e-6);  // 32 lanes of 1e6 by 16 a clock; fp64: 160 us
  EXPECT_STREQ(t.bound(), "arithmetic");
}

TEST(ModelledTime, FewBlocksKeepFewMultiprocessorsBusy) {
  SimulatedWork many = one_launch(1000), few = one_launch(2);
  many.counters.shared_passes = few.counters.shared_passes = 1'000'000;
  EXPECT_DOUBLE_EQ(modelled_time(many, round_gpu()).shared, 100e-6);
  EXPECT_DOUBLE_EQ(modelled_time(few, round_gpu()).shared, 500e-6);
}

TEST(ModelledTime, LaunchesAndCopiesAddUp) {
  SimulatedWork work = one_launch(10);
  work.counters.launches = 3;
  work.transfers = 1;
  work.to_host_bytes = 10'000'000;
  const ModelledTime t = modelled_time(work, round_gpu());
  EXPECT_DOUBLE_EQ(t.launches, 4e-6);
  EXPECT_DOUBLE_EQ(t.copies, 1e-3);
  EXPECT_STREQ(t.bound(), "launches and copies");
}

TEST(ModelledTime, TensorWorkAtTheDenseRate) {
  SimulatedWork work = one_launch(10);
  work.counters.tensor_flops = 1'000'000'000'000;
  EXPECT_DOUBLE_EQ(modelled_time(work, round_gpu()).tensor, 10e-3);
}

TEST(ModelledTime, ThreePassesOfMemoryCostThreeTimesOne) {
  SimulatedWork one = one_launch(1000), three = one_launch(1000);
  one.counters.global_load_sectors = 10'000'000;
  three.counters.global_load_sectors = 30'000'000;
  const Gpu g = round_gpu();
  EXPECT_DOUBLE_EQ(modelled_time(three, g).memory / modelled_time(one, g).memory, 3);
}

TEST(FloorTime, IsOneLaunchAndTheLargerOfBytesAndFlops) {
  EXPECT_DOUBLE_EQ(floor_time({1e9, 0}, round_gpu()), 1e-6 + 1e-3);
  EXPECT_DOUBLE_EQ(floor_time({1e6, 1e10}, round_gpu()), 1e-6 + 1e-2);
  EXPECT_DOUBLE_EQ(floor_time({1e9, 0, 16}, round_gpu()), 16e-6 + 1e-3);
}

}  // namespace
}  // namespace assay
