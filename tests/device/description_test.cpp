// A GPU's description, tested with the doubles of the driver and of the management library.
#include "device/description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "gpu/double_fixture.h"
#include "gpu/management_fixture.h"
#include "records/gpu_state_json.h"

namespace assay::device {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

class DescriptionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    gpu::reset_double();
    gpu::reset_nvml_double();
  }
  void TearDown() override { SetUp(); }

  static nlohmann::json describe(const std::string& management = gpu::nvml_double_path()) {
    return nlohmann::json::parse(device::describe(gpu::double_path(), management));
  }
};

TEST_F(DescriptionTest, HasWhatBothLibrariesSayAndTheSpeeds) {
  gpu::nvml_double_state().processes = {1};
  const nlohmann::json found = describe();
  EXPECT_EQ(found.at("name"), "Simulated H200");
  EXPECT_EQ(found.at("driver"), "13.0");
  EXPECT_EQ(found.at("driver_release"), "580.95.05");
  EXPECT_EQ(found.at("pci_bus_id"), "0000:3b:00.0");
  EXPECT_EQ(found.at("compute_capability"), "9.0");
  EXPECT_EQ(found.at("multiprocessors"), 132);
  EXPECT_EQ(found.at("memory_bytes"), std::uint64_t{64} << 30);
  EXPECT_EQ(found.at("ecc"), true);
  EXPECT_EQ(found.at("mig"), false);
  EXPECT_EQ(found.at("persistence"), true);
  EXPECT_EQ(found.at("max_sm_mhz"), 1980);
  EXPECT_EQ(found.at("max_memory_mhz"), 3201);
  EXPECT_EQ(found.at("other_processes"), 1) << "this process is not one";
  EXPECT_NEAR(found.at("copy_bytes_per_s"), 2 * 4.8e12, 1e10);
  EXPECT_NEAR(found.at("bf16_flops_per_s"), 5e7, 1e5);
  EXPECT_EQ(found.at("no_management"), "");
  const GpuState state = gpu_state_from(found.at("state"));
  EXPECT_EQ(state.sm_mhz, 1755);
  EXPECT_EQ(state.temperature_c, 41);
  EXPECT_THAT(state.throttle_reasons, Optional(IsEmpty()));
  EXPECT_EQ(state.violation_ns.size(), 4u);
}

TEST_F(DescriptionTest, WithoutTheManagementLibraryItsFiguresAreAbsentAndItSaysSo) {
  const nlohmann::json found = describe("libno_such_management.so.1");
  EXPECT_THAT(found.at("no_management"), HasSubstr("no management library: libno_such"));
  for (const char* key :
       {"driver_release", "mig", "persistence", "max_sm_mhz", "max_memory_mhz", "other_processes"})
    EXPECT_TRUE(found.at(key).is_null()) << key;
  const GpuState state = gpu_state_from(found.at("state"));
  EXPECT_FALSE(state.sm_mhz || state.memory_mhz || state.temperature_c || state.throttle_reasons);
  EXPECT_THAT(state.violation_ns, IsEmpty());
  EXPECT_EQ(found.at("name"), "Simulated H200");
}

TEST_F(DescriptionTest, AManagementLibraryThatFailsIsAnError) {
  ASSERT_EQ(gpu::set_nvml_faults("nvmlDeviceGetMigMode:15@1"), 0);
  EXPECT_THROW(describe(), gpu::ManagementError);
}

}  // namespace
}  // namespace assay::device
