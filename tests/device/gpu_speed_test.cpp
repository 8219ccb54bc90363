// Speeds measured on the driver's double equal those that the double is built with.
#include "device/gpu_speed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "device/hardware_gpu.h"
#include "gpu/double_fixture.h"

namespace assay::device {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kBytes = 8 << 20;
constexpr std::uint32_t kMultiprocessors = 2;  // the fewer, the less work to simulate

class GpuSpeedTest : public ::testing::Test {
 protected:
  void SetUp() override { gpu::reset_double(); }
  void TearDown() override { gpu::reset_double(); }
};

TEST_F(GpuSpeedTest, CopiesReadAndWrite) {
  HardwareGpu gpu(gpu::double_path(), kBytes);
  EXPECT_NEAR(copy_bytes_per_s(gpu, kBytes / 2), 2 * 4.8e12, 1e10);
  EXPECT_EQ(gpu.live_bytes(), 0u);
}

TEST_F(GpuSpeedTest, MatricesCountTwoOperationsForEachProduct) {
  HardwareGpu gpu(gpu::double_path(), kBytes);
  EXPECT_NEAR(bf16_flops_per_s(gpu, kMultiprocessors), 5e7, 1e5);
  EXPECT_EQ(gpu.live_bytes(), 0u);
}

TEST_F(GpuSpeedTest, WhatFailsIsNoSpeed) {
  for (const char* fault : {"cuMemcpyDtoDAsync_v2:719@3", "cuEventElapsedTime:719@4"}) {
    gpu::reset_double();
    HardwareGpu gpu(gpu::double_path(), kBytes);
    ASSERT_EQ(gpu::set_faults(fault), 0);
    try {
      copy_bytes_per_s(gpu, 1 << 20);
      FAIL() << fault;
    } catch (const std::runtime_error& e) {
      EXPECT_THAT(e.what(), HasSubstr("CUDA_ERROR_LAUNCH_FAILED")) << fault;
    }
  }
  gpu::reset_double();
  HardwareGpu gpu(gpu::double_path(), kBytes);
  EXPECT_THROW(copy_bytes_per_s(gpu, 2 * kBytes), std::runtime_error) << "more than there is";
  // The flush of the cache is a launch too, so the second launch is the kernel's.
  ASSERT_EQ(gpu::set_faults("cuLaunchKernel:719@2"), 0);
  EXPECT_THROW(bf16_flops_per_s(gpu, kMultiprocessors), std::runtime_error);
}

}  // namespace
}  // namespace assay::device
