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

// Measures copy bandwidth (bytes read plus written per second, all cores, beyond the caches) and the
// fp32 multiply-add rate. Takes about half a second.
void calibrate(Machine&);

}  // namespace assay
