// The time of day, for people to read. Durations are std::chrono::steady_clock's affair.
#pragma once

#include <string>

namespace assay {

// UTC in the form of strftime(3). Goes on evenly whatever becomes of the system's clock while the
// process runs: it is read once, and what has passed since is added.
std::string utc_now(const char* format = "%Y-%m-%dT%H:%M:%SZ");

}  // namespace assay
