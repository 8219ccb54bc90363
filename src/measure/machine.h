// The machine a run was measured on.
#pragma once

#include <cstdint>
#include <string>

#include "assay/results.h"

namespace assay {

// Processor, cores this process may use, memory, last-level cache, kernel, distribution, and the
// first line of `compiler --version` ("" skips it). Unknown fields stay empty or 0.
Machine describe_machine(const std::string& compiler);

// Processor time since boot, in clock ticks over all cores.
struct ProcessorTicks {
  std::uint64_t busy = 0;    // working for this machine
  std::uint64_t stolen = 0;  // wanted by this virtual machine, but given to others by its host
};
ProcessorTicks processor_ticks(const std::string& stat = "/proc/stat");  // zeros if unknown

// The share of the processor time wanted between the two samples that was stolen; 0 if none was
// wanted. A metric of every timed case.
inline constexpr const char* kStolenShare = "stolen_share";
double stolen_share(const ProcessorTicks& before, const ProcessorTicks& after);

// The machine's current peak rates over all cores. Measuring takes about a tenth of a
// second.
struct Roofline {
  double bytes_per_s = 0;  // memory traffic beyond the caches: the faster of copying and reading
  double flops_per_s = 0;  // fp32 multiplications and additions
};
Roofline measure_roofline();

// Measures copy bandwidth (bytes read plus written per second, all cores, beyond the caches) and
// the fp32 multiply-add rate. Takes about a tenth of a second.
void calibrate(Machine&);

}  // namespace assay
