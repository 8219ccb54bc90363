#include "cases/gpu_clocks.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace assay::cases {
namespace {

// Reasons for low clocks that do not count as throttling (GpuState::throttle_reasons).
constexpr std::array<std::string_view, 3> kHarmless{"gpu_idle", "applications_clocks_setting",
                                                    "display_clock_setting"};

bool is_harmless(const std::string& reason) {
  return std::ranges::find(kHarmless, reason) != kHarmless.end();
}

}  // namespace

std::optional<bool> is_throttled(const GpuState& before, const GpuState& after) {
  if (!after.throttle_reasons && after.violation_ns.empty()) return std::nullopt;
  if (after.throttle_reasons && !std::ranges::all_of(*after.throttle_reasons, &is_harmless))
    return true;
  return std::ranges::any_of(after.violation_ns, [&](const auto& cause) {
    const auto earlier = before.violation_ns.find(cause.first);
    return earlier != before.violation_ns.end() && cause.second > earlier->second;
  });
}

void GpuClocks::Range::take(const std::optional<double>& value) {
  if (!value) return;
  low = std::min(low.value_or(*value), *value);
  high = std::max(high.value_or(*value), *value);
}

void GpuClocks::see(const GpuState& state) {
  clock_.take(state.sm_mhz);
  temperature_.take(state.temperature_c);
}

void GpuClocks::count(bool throttled) {
  ++repetitions_;
  throttled_ += throttled ? 1 : 0;
}

std::vector<Metric> GpuClocks::metrics() const {
  std::vector<Metric> all;
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) all.push_back({name, *value});
  };
  add(kGpuClockLow, clock_.low);
  add(kGpuClockHigh, clock_.high);
  add(kGpuTemperatureLow, temperature_.low);
  add(kGpuTemperatureHigh, temperature_.high);
  if (repetitions_ > 0)
    all.push_back({kThrottledShare, static_cast<double>(throttled_) / repetitions_});
  return all;
}

}  // namespace assay::cases
