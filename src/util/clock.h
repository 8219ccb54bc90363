// The time of day, for people to read, and a clock for durations.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>

namespace assay {

// The time of day. It advances evenly even if the system's clock is changed while the process runs:
// the clock is read once, and the time passed since is added.
std::time_t seconds_since_1970();
// UTC, formatted by strftime(3).
std::string utc_now(const char* format = "%Y-%m-%dT%H:%M:%SZ");

// Seconds of a monotonic clock with an arbitrary start, the same for all processes.
double steady_seconds();
// The same clock in ns. In the header, because the device process uses nothing else of this file.
inline std::uint64_t steady_nanoseconds() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

}  // namespace assay
