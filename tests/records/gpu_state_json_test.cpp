// A GPU's state survives conversion to JSON and back, including absent values.
#include "records/gpu_state_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace assay {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;
using ::testing::Pair;

TEST(GpuStateJson, KeepsWhatIsTold) {
  GpuState state;
  state.sm_mhz = 1755;
  state.memory_mhz = 3201;
  state.temperature_c = 41;
  state.throttle_reasons = {"sw_power_cap"};
  state.violation_ns = {{"power", 5'000'000'000'001}};
  const GpuState read = gpu_state_from(nlohmann::json::parse(to_json(state).dump()));
  EXPECT_EQ(read.sm_mhz, 1755);
  EXPECT_EQ(read.memory_mhz, 3201);
  EXPECT_EQ(read.temperature_c, 41);
  EXPECT_THAT(read.throttle_reasons, Optional(ElementsAre("sw_power_cap")));
  EXPECT_THAT(read.violation_ns, ElementsAre(Pair("power", 5'000'000'000'001)));
}

TEST(GpuStateJson, KeepsWhatIsAbsent) {
  const GpuState read = gpu_state_from(nlohmann::json::parse(to_json(GpuState{}).dump()));
  EXPECT_FALSE(read.sm_mhz || read.memory_mhz || read.temperature_c || read.throttle_reasons);
  EXPECT_TRUE(read.violation_ns.empty());
}

TEST(GpuStateJson, AnotherDocumentIsAnError) {
  EXPECT_THROW(gpu_state_from(nlohmann::json::object()), nlohmann::json::exception);
  nlohmann::json document = to_json(GpuState{});
  document["sm_mhz"] = "fast";
  EXPECT_THROW(gpu_state_from(document), nlohmann::json::exception);
}

}  // namespace
}  // namespace assay
