#include "util/clock.h"

#include <array>
#include <chrono>
#include <ctime>

namespace assay {
namespace {

// Seconds since boot, sleep included.
std::time_t uptime() {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return t.tv_sec;
}

}  // namespace

std::time_t seconds_since_1970() {
  static const std::time_t machine_started = std::time(nullptr) - uptime();
  return machine_started + uptime();
}

std::string utc_now(const char* format) {
  const std::time_t now = seconds_since_1970();
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 64> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), format, &parts);
  return {text.data(), length};
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace assay
