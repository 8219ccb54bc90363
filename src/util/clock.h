// The time of day, for people to read, and a clock for durations.
#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>

namespace assay {

// The time of day goes on evenly whatever becomes of the system's clock while the process runs: it
// is read once, and what has passed since is added.
std::time_t seconds_since_1970();
// UTC in the form of strftime(3).
std::string utc_now(const char* format = "%Y-%m-%dT%H:%M:%SZ");

// Seconds of a clock that never jumps, from a beginning that means nothing; of all processes alike.
double steady_seconds();
// Of the same clock. In the header, because the device process has nothing else of this.
inline std::uint64_t steady_nanoseconds() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

}  // namespace assay
