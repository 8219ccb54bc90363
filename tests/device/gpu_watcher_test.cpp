// The state of a GPU, line by line, tested with the double of the management library.
#include "device/gpu_watcher.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "gpu/management_fixture.h"
#include "records/gpu_state_json.h"

namespace assay::device {
namespace {

class GpuWatcherTest : public gpu::ManagementTest {
 protected:
  std::istringstream questions_{"\n\n"};
  std::ostringstream answers_;

  void watch() { watch_gpu(gpu::nvml_double_path(), gpu::kBusId, questions_, answers_); }
};

TEST_F(GpuWatcherTest, AnswersEachLineWithAState) {
  gpu::nvml_double_state().sm_mhz = 1500;
  watch();
  std::istringstream answers(answers_.str());
  int states = 0;
  for (std::string line; std::getline(answers, line); ++states)
    EXPECT_EQ(gpu_state_from(nlohmann::json::parse(line)).sm_mhz, 1500);
  EXPECT_EQ(states, 2);
}

TEST_F(GpuWatcherTest, AFailureEndsItAfterTheAnswersBefore) {
  ASSERT_EQ(gpu::set_nvml_faults("nvmlDeviceGetTemperature:15@2"), 0);
  EXPECT_THROW(watch(), gpu::ManagementError);
  EXPECT_THAT(answers_.str(), ::testing::EndsWith("}\n"));
}

}  // namespace
}  // namespace assay::device
