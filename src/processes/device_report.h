// What the harness asks of a simulated GPU, and what it says of a call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "assay/case.h"
#include "assay/results.h"
#include "records/simulated_work.h"

namespace assay::processes {

struct DeviceSettings {
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;
  std::uint64_t launch_limit = kInstructionLimit;  // warp instructions of one launch
  unsigned threads = 1;  // that simulate blocks; results do not depend on it
  int image_fd = -1;     // the program to run as the device; -1: assay's own
  // The path or name of CUDA's driver library: the device is the real GPU behind it, and what it
  // does is measured instead of counted. "": simulated.
  std::string driver;

  bool is_real() const { return !driver.empty(); }
};

// What happened on the device in one phase or more.
struct DeviceReport {
  SimulatedWork work;
  std::uint64_t findings = 0;  // places where a check found something
  std::string first_finding;   // in words, made printable
  std::string unsupported;     // what needs a GPU, "" if nothing does
  std::string invalid_ptx;
  std::string refused;      // the first launch that could not be, and why; no failure by itself
  bool over_limit = false;  // too many instructions
  double seconds = 0;       // of a real GPU: that it worked in the phase that counts

  // Bytes that went to the host in the phases so far.
  std::uint64_t to_host = 0;

  // A later phase. If it is the one that counts, its work takes the place of what stood here, and
  // what went to the host until then is that before it; most memory stays.
  void add(const DeviceReport& later, bool counts);
};

// Why what ran there failed whatever it answered: needs_gpu, device_error or time_limit; absent
// where nothing is to be said against it.
struct DeviceFailure {
  Verdict verdict = Verdict::device_error;
  std::string detail;
};
std::optional<DeviceFailure> device_failure(const DeviceReport&);

}  // namespace assay::processes
