// The process that watches a GPU, tested with the double of the management library.
#include "processes/gpu_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "support/error_of.h"
#include "support/paths.h"
#include "support/temporary_folder.h"

namespace assay::processes {
namespace {

using ::testing::AllOf;
using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;

constexpr char kBusId[] = "0000:3b:00.0";

// Where assay runs as root, the watcher runs as another user, who may be unable to enter a closed
// build folder.
class GpuWatchTest : public ::testing::Test {
 protected:
  GpuWatchTest() {
    namespace fs = std::filesystem;
    for (const char* name : {"libnvidia-ml-double.so", "libnvml_loses_the_gpu.so",
                             "libnvml_hangs_at_the_second_state.so"})
      fs::copy_file(fs::path(testing::binary_dir()) / "tests" / name, folder_.path / name);
    fs::permissions(folder_.path, fs::perms(0755));
  }
  std::string library(const std::string& name) const { return folder_.path / name; }

  testing::TemporaryFolder folder_;
};

TEST_F(GpuWatchTest, TellsTheStateAsOftenAsItIsAsked) {
  GpuWatch watch(library("libnvidia-ml-double.so"), kBusId);
  for (int i = 0; i < 3; ++i) {
    const GpuState state = watch.state();
    EXPECT_EQ(state.sm_mhz, 1755);
    EXPECT_EQ(state.memory_mhz, 3201);
    EXPECT_EQ(state.temperature_c, 41);
    EXPECT_THAT(state.throttle_reasons, Optional(IsEmpty()));
    EXPECT_EQ(state.violation_ns.at("power"), 0u);
  }
}

TEST_F(GpuWatchTest, ThatThereIsNoLibraryOrNoSuchGpuIsSaid) {
  GpuWatch without("libno_such_management.so.1", kBusId);
  EXPECT_THAT(error_of([&] { without.state(); }),
              HasSubstr("the process that watches the GPU: it ended: no management library: "
                        "libno_such_management.so.1"));
  GpuWatch elsewhere(library("libnvidia-ml-double.so"), "0000:00:00.0");
  EXPECT_THAT(error_of([&] { elsewhere.state(); }),
              HasSubstr("nvmlDeviceGetHandleByPciBusId_v2 of 0000:00:00.0 failed with code 6"));
}

TEST_F(GpuWatchTest, AGpuThatIsLostEndsItAndThatIsSaidFromThenOn) {
  GpuWatch watch(library("libnvml_loses_the_gpu.so"), kBusId);
  EXPECT_EQ(watch.state().temperature_c, 41);
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(error_of([&] { watch.state(); }),
                AllOf(HasSubstr("it ended: "), HasSubstr("nvmlDeviceGetTemperature failed with "
                                                         "code 15 (GPU is lost)")));
}

TEST_F(GpuWatchTest, OneThatHangsIsEndedAfterItsTime) {
  GpuWatch watch(library("libnvml_hangs_at_the_second_state.so"), kBusId);
  EXPECT_EQ(watch.state().sm_mhz, 1755);
  for (int i = 0; i < 2; ++i)
    EXPECT_THAT(error_of([&] { watch.state(std::chrono::milliseconds(20)); }),
                HasSubstr("it does not answer within 20 ms"));
}

}  // namespace
}  // namespace assay::processes
