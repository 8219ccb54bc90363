#include "processes/device_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace assay::processes {

void DeviceReport::add(const DeviceReport& later, bool counts) {
  const std::uint64_t most = std::max(work.device_bytes, later.work.device_bytes);
  if (counts) {
    work = later.work;
    seconds = later.seconds;
    work.to_host_before = to_host;
  }
  to_host += later.work.to_host_bytes;
  work.device_bytes = most;
  if (findings == 0) first_finding = later.first_finding;
  findings += later.findings;
  if (unsupported.empty()) unsupported = later.unsupported;
  if (invalid_ptx.empty()) invalid_ptx = later.invalid_ptx;
  if (refused.empty()) refused = later.refused;
  over_limit = std::max(over_limit, later.over_limit);
}

std::optional<DeviceFailure> device_failure(const DeviceReport& report) {
  if (!report.unsupported.empty())
    return DeviceFailure{Verdict::needs_gpu, fmt::format("needs a GPU ({})", report.unsupported)};
  if (!report.invalid_ptx.empty()) {
    return DeviceFailure{Verdict::device_error,
                         "the device rejects the program: " + report.invalid_ptx};
  }
  if (report.findings > 0) {
    std::string detail = report.first_finding;
    if (report.findings > 1)
      detail += fmt::format(" (and findings at {} more places)", report.findings - 1);
    return DeviceFailure{Verdict::device_error, std::move(detail)};
  }
  if (report.over_limit > 0) {
    return DeviceFailure{Verdict::time_limit,
                         fmt::format("its kernels want more warp instructions than the {:.3g} "
                                     "million that a call may execute",
                                     static_cast<double>(report.over_limit) * 1e-6)};
  }
  return std::nullopt;
}

}  // namespace assay::processes
