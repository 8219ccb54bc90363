#include "sim/occupancy.h"

#include <gtest/gtest.h>

#include <string>

namespace assay::sim {
namespace {

KernelInfo kernel(std::uint32_t registers, std::uint32_t static_shared = 0) {
  KernelInfo info;
  info.registers = registers;
  info.static_shared_bytes = static_shared;
  info.max_threads = 256;
  return info;
}

void expect(const Residency& got, std::uint32_t warps, ResidencyLimit limit) {
  EXPECT_EQ(got.warps, warps);
  EXPECT_STREQ(to_string(got.limit), to_string(limit));
}

// The figures of NVIDIA's occupancy calculator for compute capability 9.0.
TEST(Residency, TheScarcestResourceLimitsIt) {
  expect(residency_of(kernel(32), 256, 0), 64, ResidencyLimit::threads);
  expect(residency_of(kernel(32), 32, 0), 32, ResidencyLimit::blocks);
  expect(residency_of(kernel(32), 256, 100 << 10), 16, ResidencyLimit::shared_memory);
  expect(residency_of(kernel(32, 48 << 10), 256, 0), 32, ResidencyLimit::shared_memory);
  expect(residency_of(kernel(64), 256, 0), 32, ResidencyLimit::registers);
  // 40 registers are 5 units of 256 for a warp: 12 warps in each sub-partition.
  expect(residency_of(kernel(40), 256, 0), 48, ResidencyLimit::registers);
  expect(residency_of(kernel(255), 256, 0), 8, ResidencyLimit::registers);
}

TEST(Residency, APartOfAWarpTakesAWholeOne) {
  expect(residency_of(kernel(32), 33, 0), 64, ResidencyLimit::threads);
  expect(residency_of(kernel(32), 96, 0), 63, ResidencyLimit::threads);
}

TEST(Residency, WhatCannotBeLaunchedIsNeverResident) {
  EXPECT_EQ(residency_of(kernel(32), 0, 0).warps, 0u);
  EXPECT_EQ(residency_of(kernel(32), 512, 0).warps, 0u);
  EXPECT_EQ(residency_of(kernel(32), 32, 228 << 10).warps, 0u);
}

TEST(Residency, RegistersCountOtherThanInQueriesOfTheProgram) {
  EXPECT_EQ(blocks_per_multiprocessor(kernel(64), 256, 0), 8u);
  EXPECT_EQ(residency_of(kernel(64), 256, 0).warps, 32u);
}

}  // namespace
}  // namespace assay::sim
