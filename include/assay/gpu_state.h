// What a real GPU was like at one moment, as its management library tells it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace assay {

// Absent is what the library does not tell of this GPU, or not to this user.
struct GpuState {
  std::optional<double> sm_mhz, memory_mhz;  // clocks
  std::optional<double> temperature_c;
  // Why the clocks are not higher, in the words of `nvidia-smi -q -d PERFORMANCE`: "sw_power_cap",
  // "hw_thermal_slowdown". Two are no throttling: "gpu_idle" and "applications_clocks_setting".
  std::optional<std::vector<std::string>> throttle_reasons;
  // For how long each cause has held the clocks down since the driver was loaded: "power", "thermal",
  // "reliability", "board_limit".
  std::map<std::string, std::uint64_t> violation_ns;
};

}  // namespace assay
