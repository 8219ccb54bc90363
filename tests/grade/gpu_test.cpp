#include "grade/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/error.h"

namespace assay {
namespace {

using testing::HasSubstr;

using sim::Unit;

// Round figures: 10 multiprocessors at 1 GHz, 1 TB/s.
std::string round_sheet(const std::string& mma_share) {
  return R"({
    "name": "round", "source": "made up", "multiprocessors": 10, "clock_hz": 1e9,
    "memory_bytes_per_s": 1e12, "host_bytes_per_s": 1e10, "fp32_flops": 1e12,
    "tensor_flops": {"f64": 1e12, "tf32": 1e13, "f16": 1e14, "f8": 2e14, "s8": 2e14, "s4": 4e14,
                     "b1": 8e14},
    "mma_share": )" +
         mma_share + R"(,
    "lanes_per_clock": {"fp32": 128, "integer": 64, "fp16": 128, "fp64": 2, "special": 16,
                        "conversion": 64, "load_store": 32},
    "launch_s": 1e-6})";
}
Gpu round_gpu() { return parse_gpu(round_sheet("0.5")); }

SimulatedWork one_launch() {
  SimulatedWork work;
  work.counters.launches = 1;
  return work;
}

// That amount of a unit's work, in as many equal blocks as there are multiprocessors.
void spread(SimulatedWork& work, Unit u, std::uint64_t amount) {
  work.counters.total[u] = amount;
  work.counters.critical[u] = amount / 10;
}

TEST(Gpu, BringsTheDataSheetsThatItNames) {
  EXPECT_THAT(gpu_names(), testing::ElementsAre("a100", "h100", "h200", "rtx4090"));
  EXPECT_EQ(gpu_named(kDefaultGpu).name, "H200");
  EXPECT_DOUBLE_EQ(gpu_named("h200").memory_bytes_per_s, 4.8e12);
  for (const std::string& name : gpu_names()) {
    // fp32 peak = 2 * lanes * multiprocessors * clock: the data sheet is consistent.
    const Gpu& g = gpu_named(name);
    EXPECT_NEAR(2 * 32 * g.rate_of(Unit::fp32) * g.multiprocessors / g.fp32_flops, 1, 0.01) << name;
    for (const double rate : g.rate) EXPECT_GT(rate, 0) << name;
    EXPECT_GE(g.rate_of(Unit::tensor_f16), 2 * g.rate_of(Unit::tensor_tf32) * 0.999) << name;
    EXPECT_GT(g.rate_of(Unit::tensor_tf32), 2 * g.rate_of(Unit::tensor_f64)) << name;
  }
}

TEST(Gpu, FloorsCountWithTheRateOfWarpgroups) {
  EXPECT_DOUBLE_EQ(round_gpu().fastest_flops(), 2e14);
  EXPECT_DOUBLE_EQ(gpu_named("h200").fastest_flops(), 1979e12);
}

TEST(Gpu, UnknownNamesAndBrokenSheetsAreErrors) {
  EXPECT_THROW(gpu_named("h100x"), Error);
  EXPECT_THROW(parse_gpu("{}"), Error);
  EXPECT_THROW(parse_gpu("not json"), Error);
  EXPECT_THROW(parse_gpu(round_sheet("1.01")), Error);
  EXPECT_THROW(parse_gpu(round_sheet("0")), Error);
  try {
    gpu_named("h100x");
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("rtx4090"));
  }
}

TEST(ModelledTime, CountsMemoryBySectorsAndCopiesWithin) {
  SimulatedWork work = one_launch();
  work.counters.global_load_sectors = 1'000'000;
  work.counters.global_store_sectors = 400'000;
  work.counters.local_sectors = 20'000;
  work.counters.atomic_sectors = 40'000;
  work.within_bytes = 2'000'000;
  const ModelledTime t = modelled_time(work, round_gpu());
  EXPECT_DOUBLE_EQ(t.memory, 50e-6);  // 1.5 million sectors and 2 MB
  EXPECT_DOUBLE_EQ(t.total(), 51e-6);
  EXPECT_STREQ(t.bound(), "memory");
}

TEST(ModelledTime, SlowestPipeAndIssueByHand) {
  SimulatedWork work = one_launch();
  spread(work, Unit::issue, 4'000'000);
  spread(work, Unit::special, 1'000'000);
  spread(work, Unit::fp64, 100'000);
  const ModelledTime t = modelled_time(work, round_gpu());
  EXPECT_DOUBLE_EQ(t.issue, 100e-6);       // 4 per clock on each of 10
  EXPECT_DOUBLE_EQ(t.arithmetic, 200e-6);  // 32 lanes of 1e6 by 16 per clock; fp64: 160 us
  EXPECT_STREQ(t.bound(), "arithmetic");
}

TEST(ModelledTime, TheLongestBlockBoundsIt) {
  SimulatedWork work = one_launch();
  spread(work, Unit::shared, 1'000'000);
  EXPECT_DOUBLE_EQ(modelled_time(work, round_gpu()).shared, 100e-6);
  work.counters.critical[Unit::shared] = 500'000;
  EXPECT_DOUBLE_EQ(modelled_time(work, round_gpu()).shared, 500e-6);
  work.counters.critical[Unit::shared] = 1000;  // as on a GPU with more multiprocessors
  EXPECT_DOUBLE_EQ(modelled_time(work, round_gpu()).shared, 100e-6);
}

TEST(ModelledTime, AWarpDoesOneInstructionAClock) {
  SimulatedWork work = one_launch();
  work.counters.longest_warp = 5000;
  EXPECT_DOUBLE_EQ(modelled_time(work, round_gpu()).warp, 5e-6);
  EXPECT_STREQ(modelled_time(work, round_gpu()).bound(), "longest warp");
}

TEST(ModelledTime, TheBusiestSliceOfTheCacheBoundsAtomics) {
  SimulatedWork work = one_launch();
  work.counters.atomic_hot_passes = 7000;
  EXPECT_DOUBLE_EQ(modelled_time(work, round_gpu()).atomics, 7e-6);
  EXPECT_STREQ(modelled_time(work, round_gpu()).bound(), "atomics");
}

TEST(ModelledTime, LaunchesAndCopiesAddUp) {
  SimulatedWork work = one_launch();
  work.counters.launches = 3;
  work.transfers = 1;
  work.to_host_bytes = 10'000'000;
  const ModelledTime t = modelled_time(work, round_gpu());
  EXPECT_DOUBLE_EQ(t.launches, 4e-6);
  EXPECT_DOUBLE_EQ(t.copies, 1e-3);
  EXPECT_STREQ(t.bound(), "launches and copies");
}

TEST(ModelledTime, MatrixTypesGoOneAfterAnotherEachAtItsRate) {
  SimulatedWork work = one_launch();
  spread(work, Unit::warpgroup_f16, 1'000'000'000'000);
  EXPECT_DOUBLE_EQ(modelled_time(work, round_gpu()).tensor, 10e-3);
  spread(work, Unit::tensor_f16, 1'000'000'000'000);
  EXPECT_DOUBLE_EQ(modelled_time(work, round_gpu()).tensor, 30e-3) << "half as fast";
  spread(work, Unit::tensor_f64, 1'000'000'000'000);
  EXPECT_DOUBLE_EQ(modelled_time(work, round_gpu()).tensor, 1030e-3) << "warpgroups have none";
}

TEST(ModelledTime, ThreePassesOfMemoryCostThreeTimesOne) {
  SimulatedWork one = one_launch(), three = one_launch();
  one.counters.global_load_sectors = 10'000'000;
  three.counters.global_load_sectors = 30'000'000;
  const Gpu g = round_gpu();
  EXPECT_DOUBLE_EQ(modelled_time(three, g).memory / modelled_time(one, g).memory, 3);
}

// Flops at the fastest rate: no implementation can beat it, whatever precision it computes in.
TEST(FloorTime, IsOneLaunchAndTheLargerOfBytesAndFlops) {
  EXPECT_DOUBLE_EQ(floor_time({1e9, 0}, round_gpu()), 1e-6 + 1e-3);
  EXPECT_DOUBLE_EQ(floor_time({1e6, 2e10}, round_gpu()), 1e-6 + 1e-4);
  EXPECT_DOUBLE_EQ(floor_time({1e9, 0, 16}, round_gpu()), 16e-6 + 1e-3);
}

}  // namespace
}  // namespace assay
