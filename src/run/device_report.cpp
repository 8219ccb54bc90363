#include "run/device_report.h"

#include <algorithm>

namespace assay::run {

void DeviceReport::add(const DeviceReport& later, bool counts) {
  const std::uint64_t most = std::max(work.device_bytes, later.work.device_bytes);
  if (counts) {
    work = later.work;
    work.to_host_before = to_host;
  }
  to_host += later.work.to_host_bytes;
  work.device_bytes = most;
  if (findings == 0) first_finding = later.first_finding;
  findings += later.findings;
  if (unsupported.empty()) unsupported = later.unsupported;
  if (invalid_ptx.empty()) invalid_ptx = later.invalid_ptx;
  over_limit = over_limit || later.over_limit;
}

}  // namespace assay::run
