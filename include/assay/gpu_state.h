// The state of a real GPU at one moment, as its management library reports it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// Values are absent if the library does not report them for this GPU or to this user.
struct GpuState {
  std::optional<double> sm_mhz, memory_mhz;  // clocks
  std::optional<double> temperature_c;
  // Why the clocks are not higher, in the words of `nvidia-smi -q -d PERFORMANCE`: "sw_power_cap",
  // "hw_thermal_slowdown". Two are not throttling: "gpu_idle" and "applications_clocks_setting".
  std::optional<std::vector<std::string>> throttle_reasons;
  // How long each cause has held the clocks down since the driver was loaded: "power", "thermal",
  // "reliability", "board_limit".
  std::map<std::string, std::uint64_t> violation_ns;
};

// Metrics of a case that was timed on a real GPU, as far as its management library reports them:
// the range of its clock and its temperature, and the share of the repetitions in which something
// held the clocks down.
inline constexpr const char *kGpuClockLow = "gpu_sm_mhz_low", *kGpuClockHigh = "gpu_sm_mhz_high",
                            *kGpuTemperatureLow = "gpu_temperature_c_low",
                            *kGpuTemperatureHigh = "gpu_temperature_c_high",
                            *kThrottledShare = "gpu_throttled_share";

}  // namespace assay
