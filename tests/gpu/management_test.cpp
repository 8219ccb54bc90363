// What the management library reports about a GPU, and how missing figures are handled.
#include "gpu/management.h"

#include <unistd.h>

#include <array>
#include <optional>

#include "gpu/management_fixture.h"

namespace assay::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

Management open() { return {nvml_double_path(), kBusId}; }

const std::array kUs{static_cast<unsigned>(::getpid())};

TEST_F(ManagementTest, TellsTheSetting) {
  const GpuSetting setting = open().setting();
  EXPECT_EQ(setting.driver_release, "580.95.05");
  EXPECT_EQ(setting.max_sm_mhz, 1980);
  EXPECT_EQ(setting.max_memory_mhz, 3201);
  EXPECT_EQ(setting.ecc, true);
  EXPECT_EQ(setting.mig, false);
  EXPECT_EQ(setting.persistence, true);
}

TEST_F(ManagementTest, TellsTheStateNow) {
  const Management management = open();
  EXPECT_THAT(management.state().throttle_reasons, Optional(IsEmpty()));
  NvmlDoubleState& said = nvml_double_state();
  said.sm_mhz = 1200;
  said.temperature_c = 83;
  said.reasons = 0x4 | 0x40;
  said.violations = {{kNvmlPolicyPower, 5'000'000'000'000}, {kNvmlPolicyReliability, 7}};
  const GpuState state = management.state();
  EXPECT_EQ(state.sm_mhz, 1200);
  EXPECT_EQ(state.memory_mhz, 3201);
  EXPECT_EQ(state.temperature_c, 83);
  EXPECT_THAT(state.throttle_reasons, Optional(ElementsAre("sw_power_cap", "hw_thermal_slowdown")));
  EXPECT_THAT(state.violation_ns,
              UnorderedElementsAre(Pair("power", 5'000'000'000'000), Pair("thermal", 0),
                                   Pair("reliability", 7), Pair("board_limit", 0)));
}

TEST_F(ManagementTest, AReasonThatIsNewIsTold) {
  nvml_double_state().reasons = 0x1 | 0x600;
  EXPECT_THAT(open().state().throttle_reasons,
              Optional(ElementsAre("gpu_idle", "unknown reason 0x600")));
}

TEST_F(ManagementTest, CountsTheProcessesOfOthers) {
  const Management management = open();
  EXPECT_EQ(management.other_processes(kUs), 0u);
  nvml_double_state().processes = {1, 2};
  EXPECT_EQ(management.other_processes(kUs), 2u);
  nvml_double_state().processes.resize(1000, 7);
  EXPECT_EQ(management.other_processes(kUs), 1000u) << "more than there is room for at first";
}

TEST_F(ManagementTest, WhereOursAreNotListedNobodyKnowsTheOthers) {
  nvml_double_state().processes = {1};
  nvml_double_state().lists_caller = false;
  EXPECT_EQ(open().other_processes(kUs), std::nullopt);
  EXPECT_EQ(open().other_processes({}), 1u);
}

TEST(ManagementMissing, IsSaid) {
  try {
    const Management management("libno_such_management.so.1", kBusId);
    FAIL() << "no error";
  } catch (const NoManagement& e) {
    EXPECT_EQ(e.code, kNvmlLibraryNotFound);
    EXPECT_THAT(e.what(), HasSubstr("no management library: libno_such_management.so.1: "));
    EXPECT_THAT(e.what(), HasSubstr("it comes with NVIDIA's driver"));
  }
}

TEST(ManagementMissing, AnotherLibraryIsAnError) {
  try {
    const Management management("libm.so.6", kBusId);
    FAIL() << "no error";
  } catch (const NoManagement&) {
    FAIL() << "there is a library";
  } catch (const ManagementError& e) {
    EXPECT_EQ(e.code, kNvmlFunctionNotFound);
    EXPECT_THAT(e.what(), HasSubstr("libm.so.6 has no function nvmlInit_v2"));
  }
}

TEST_F(ManagementTest, AGpuThatItDoesNotKnowIsAnError) {
  try {
    const Management management(nvml_double_path(), "0000:00:00.0");
    FAIL() << "no error";
  } catch (const ManagementError& e) {
    EXPECT_EQ(e.code, kNvmlNotFound);
    EXPECT_THAT(e.what(), HasSubstr("nvmlDeviceGetHandleByPciBusId_v2 of 0000:00:00.0 failed with "
                                    "code 6 (Not Found); check that nvidia-smi lists the GPU"));
  }
}

// Everything that is reported, for comparison.
struct Told {
  GpuSetting setting;
  GpuState state;
  std::optional<std::size_t> others;
};
Told ask_all() {
  const Management management = open();
  return {management.setting(), management.state(), management.other_processes(kUs)};
}

int figures_of(const Told& told) {
  const auto& [setting, state, others] = told;
  return setting.driver_release.has_value() + setting.max_sm_mhz.has_value() +
         setting.max_memory_mhz.has_value() + setting.ecc.has_value() + setting.mig.has_value() +
         setting.persistence.has_value() + state.sm_mhz.has_value() + state.memory_mhz.has_value() +
         state.temperature_c.has_value() + state.throttle_reasons.has_value() +
         static_cast<int>(state.violation_ns.size()) + others.has_value();
}

// Each function returns each error that its documentation lists, at its first call. If the GPU does
// not support a figure or this user may not know it, that figure is absent; every other error is
// reported with its call and code.
TEST_F(ManagementTest, EachErrorOfEachFunctionIsToldOrMakesItsFigureAbsent) {
  const Told whole = ask_all();
  ASSERT_EQ(figures_of(whole), 15);
  struct Row {
    const char* function;
    std::vector<int> codes;
  };
  const std::vector<int> of_figures{kNvmlUninitialized, kNvmlInvalidArgument, kNvmlNotSupported,
                                    kNvmlNoPermission,  kNvmlGpuIsLost,       kNvmlUnknown};
  const std::vector<Row> rows{
      {"nvmlInit_v2",
       {kNvmlDriverNotLoaded, kNvmlNoPermission, kNvmlLibRmVersionMismatch, kNvmlUnknown}},
      {"nvmlSystemGetDriverVersion",
       {kNvmlUninitialized, kNvmlInvalidArgument, kNvmlInsufficientSize}},
      {"nvmlDeviceGetHandleByPciBusId_v2",
       {kNvmlUninitialized, kNvmlInvalidArgument, kNvmlNotFound, kNvmlInsufficientPower,
        kNvmlNoPermission, kNvmlIrqIssue, kNvmlGpuIsLost, kNvmlUnknown}},
      {"nvmlDeviceGetClockInfo", of_figures},
      {"nvmlDeviceGetMaxClockInfo", of_figures},
      {"nvmlDeviceGetTemperature", of_figures},
      {"nvmlDeviceGetEccMode", of_figures},
      {"nvmlDeviceGetMigMode", of_figures},
      {"nvmlDeviceGetPersistenceMode", of_figures},
      {"nvmlDeviceGetCurrentClocksEventReasons", of_figures},
      {"nvmlDeviceGetViolationStatus", of_figures},
      {"nvmlDeviceGetComputeRunningProcesses_v3", of_figures},
  };
  std::vector<std::string> tried;
  for (const auto& [function, codes] : rows) {
    tried.emplace_back(function);
    const bool is_figure = codes == of_figures;
    for (const int code : codes) {
      const std::string fault = std::string(function) + ":" + std::to_string(code) + "@1";
      reset_nvml_double();
      ASSERT_EQ(set_nvml_faults(fault), 0);
      try {
        EXPECT_EQ(figures_of(ask_all()), 14) << fault;
        EXPECT_TRUE(is_figure && (code == kNvmlNotSupported || code == kNvmlNoPermission)) << fault;
      } catch (const ManagementError& e) {
        EXPECT_FALSE(is_figure && (code == kNvmlNotSupported || code == kNvmlNoPermission))
            << fault;
        EXPECT_EQ(e.code, code);
        EXPECT_THAT(e.what(), HasSubstr(function));
        EXPECT_THAT(e.what(), HasSubstr("code " + std::to_string(code)));
      }
    }
  }
#define ASSAY_CHECK(member, name, parameters) EXPECT_THAT(tried, ::testing::Contains(#name));
  ASSAY_MANAGEMENT_FUNCTIONS(ASSAY_CHECK)
#undef ASSAY_CHECK
}

TEST_F(ManagementTest, AListThatNeverHasRoomIsAnError) {
  std::string faults;
  for (int i = 1; i <= 100; ++i)
    faults += "nvmlDeviceGetComputeRunningProcesses_v3:7@" + std::to_string(i) + ";";
  ASSERT_EQ(set_nvml_faults("nvmlDeviceGetComputeRunningProcesses_v3:7@1"), 0);
  EXPECT_EQ(open().other_processes(kUs), 0u);
  ASSERT_EQ(set_nvml_faults(faults), 0);
  EXPECT_THROW(open().other_processes(kUs), ManagementError);
}

// Runs in a new process that has not used the double before.
TEST(NvmlDoubleEnvironment, HoldsTheFirstFaultsAndNothingElse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  ::setenv("ASSAY_NVML_DOUBLE", "nvmlInvent:1@1", 1);
  EXPECT_DEATH(open(),
               "ASSAY_NVML_DOUBLE: fault 'nvmlInvent:1@1': no function nvmlInvent: take a "
               "name that gpu/management.h lists");
  ::unsetenv("ASSAY_NVML_DOUBLE");
}

}  // namespace
}  // namespace assay::gpu
