#include "device/watchdog.h"

#include <chrono>
#include <cstdlib>
#include <thread>

#include "sim/device.h"
#include "wire/device.h"

namespace assay::device {

void watch(const std::atomic<std::uint64_t>& deadline) {
  std::thread([&deadline] {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      const std::uint64_t ns = deadline;
      if (ns != 0 && sim::processor_ns() > ns) std::_Exit(kOutOfTime);
    }
  }).detach();
}

}  // namespace assay::device
