// What a run was measured on.
#pragma once

#include <cstdint>
#include <string>

#include "assay/results.h"

namespace assay {

// Processor, cores this process may use, memory, last-level cache, kernel, distribution, and the
// first line of `compiler --version` ("" skips it). Unknown fields stay empty or 0.
Machine describe_machine(const std::string& compiler);

// What a core shares of the last level, 0 when unknown. The kernel's number before that of the C
// library, which adds up the whole processor where each of its dies has a cache of its own.
std::int64_t last_level_cache_bytes();

// What the processors did since the machine started, in clock ticks of all cores.
struct ProcessorTicks {
  std::uint64_t busy = 0;    // with work of this machine
  std::uint64_t stolen = 0;  // wanted by this virtual machine, given to others by its host
};
ProcessorTicks processor_ticks(const std::string& stat = "/proc/stat");  // zeros when unknown

// The part of the time that this machine wanted in between and did not get; 0 when it wanted none.
// A metric of every case that is measured by the clock.
inline constexpr const char* kStolenShare = "stolen_share";
double stolen_share(const ProcessorTicks& before, const ProcessorTicks& after);

// What this machine can do at most at this moment, all cores together. Takes about half a second.
struct Roofline {
  double bytes_per_s =
      0;  // to and from memory, beyond the caches: the faster of copying and reading
  double flops_per_s = 0;  // fp32 multiplications and additions
};
Roofline measure_roofline();

// Measures copy bandwidth (bytes read plus written per second, all cores, beyond the caches) and
// the fp32 multiply-add rate. Takes about half a second.
void calibrate(Machine&);

}  // namespace assay
