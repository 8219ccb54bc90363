// What the harness asks of a simulated GPU, and what the GPU reports about a call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "assay/case.h"
#include "assay/results.h"
#include "records/simulated_work.h"

namespace assay::processes {

// A real GPU, and the driver to reach it by.
struct RealGpu {
  std::string driver;  // path or name of CUDA's driver library
  // CUDA_VISIBLE_DEVICES, an index or a UUID, and CUDA_DEVICE_ORDER; "" leaves the choice to the
  // driver.
  std::string visible{}, order{};
};

struct DeviceSettings {
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  unsigned threads = 1;        // threads that simulate blocks; results do not depend on it
  int image_fd = -1;           // the program to run as the device; -1: assay's own
  std::optional<RealGpu> gpu;  // the device is this one, and its work is measured, not counted

  bool is_real() const { return gpu.has_value(); }
};

// What happened on the device in one or more phases.
struct DeviceReport {
  SimulatedWork work;
  std::uint64_t findings = 0;  // places where a check found something
  std::string first_finding;   // in words, made printable
  std::string unsupported;     // what needs a GPU, or ""
  std::string invalid_ptx;
  std::string refused;           // the first launch that was refused, and why; not a failure
  std::uint64_t over_limit = 0;  // the limit of warp instructions, if kernels wanted more
  double seconds = 0;            // real GPU: its working time in the phase that counts

  // Bytes copied to the host in the phases so far.
  std::uint64_t to_host = 0;

  // Adds a later phase. If that phase counts, its work replaces the work here, and what was copied
  // to the host until then becomes to_host_before. The larger device_bytes is kept.
  void add(const DeviceReport& later, bool counts);
};

// Why the device's work failed, whatever the submission answered: needs_gpu, device_error or
// time_limit. Absent if there is no failure.
struct DeviceFailure {
  Verdict verdict = Verdict::device_error;
  std::string detail;
};
std::optional<DeviceFailure> device_failure(const DeviceReport&);

}  // namespace assay::processes
