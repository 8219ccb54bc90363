#include "util/clock.h"

#include <array>
#include <ctime>

namespace assay {
namespace {

// Since the machine started, while it slept too.
std::time_t uptime() {
  timespec t{};
  ::clock_gettime(CLOCK_BOOTTIME, &t);
  return t.tv_sec;
}

}  // namespace

std::string utc_now(const char* format) {
  static const std::time_t machine_started = std::time(nullptr) - uptime();
  const std::time_t now = machine_started + uptime();
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 64> text{};
  const std::size_t length = std::strftime(text.data(), text.size(), format, &parts);
  return {text.data(), length};
}

}  // namespace assay
