#include "cli/real_gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/error_of.h"

namespace assay::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ChosenGpus : public ::testing::Test {
 protected:
  void SetUp() override {
    ::unsetenv("CUDA_VISIBLE_DEVICES");
    ::unsetenv("CUDA_DEVICE_ORDER");
  }
  void TearDown() override { SetUp(); }

  static std::vector<std::string> visible(const std::string& gpus) {
    std::vector<std::string> all;
    for (const processes::RealGpu& gpu : chosen_gpus({.gpus = gpus})) all.push_back(gpu.visible);
    return all;
  }
  static std::string error(const std::string& gpus) {
    return testing::error_of([&] { chosen_gpus({.gpus = gpus}); });
  }
};

TEST_F(ChosenGpus, AreTheDriversFirstByDefault) {
  const auto gpus = chosen_gpus({.driver = "libcuda.so.2"});
  ASSERT_EQ(gpus.size(), 1u);
  EXPECT_EQ(gpus[0].driver, "libcuda.so.2");
  EXPECT_EQ(gpus[0].visible, "");
  EXPECT_EQ(gpus[0].order, "");
}

TEST_F(ChosenGpus, AreThoseOfTheListNumberedAsByNvidiaSmi) {
  EXPECT_THAT(visible("1"), ElementsAre("1"));
  EXPECT_THAT(visible("3,0,12"), ElementsAre("3", "0", "12"));
  EXPECT_THAT(visible("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6,MIG-GPU-8932f937/1/0"),
              ElementsAre("GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", "MIG-GPU-8932f937/1/0"));
  EXPECT_EQ(chosen_gpus({.gpus = "1"})[0].order, "PCI_BUS_ID");
}

TEST_F(ChosenGpus, StayWithinWhatTheEnvironmentLeavesVisible) {
  ::setenv("CUDA_VISIBLE_DEVICES", "2,3", 1);
  EXPECT_THAT(visible(""), ElementsAre("2"));
  EXPECT_EQ(chosen_gpus({})[0].order, "") << "numbered as for whoever set it";
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
  EXPECT_EQ(chosen_gpus({})[0].order, "PCI_BUS_ID");
  EXPECT_THAT(visible("0"), ElementsAre("0")) << "the option goes before it";
}

TEST_F(ChosenGpus, NeverIncludeOneThatTheEnvironmentHides) {
  for (const char* hidden : {"", "-1", ",0"}) {
    ::setenv("CUDA_VISIBLE_DEVICES", hidden, 1);
    EXPECT_THAT(error(""), HasSubstr("which hides all GPUs: set it, or name one with --gpus"));
  }
}

TEST_F(ChosenGpus, AListThatIsNoneIsRefused) {
  for (const char* list : {",", "0,", "-1", "0 1", "0;1", "0,1\n"})
    EXPECT_THAT(error(list), HasSubstr("is no list of GPUs: write indices or UUIDs")) << list;
  EXPECT_THAT(error("0,1,0"), HasSubstr("--gpus 0,1,0 names '0' twice"));
}

}  // namespace
}  // namespace assay::cli
