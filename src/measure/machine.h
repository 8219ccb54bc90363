// What a run was measured on.
#pragma once

#include <string>

#include "assay/results.h"

namespace assay {

// Processor, cores this process may use, memory, last-level cache, kernel, distribution, and the
// first line of `compiler --version` ("" skips it). Unknown fields stay empty or 0.
Machine describe_machine(const std::string& compiler);

// Measures copy bandwidth (bytes read plus written per second, all cores, beyond the caches) and the
// fp32 multiply-add rate. Takes about half a second.
void calibrate(Machine&);

}  // namespace assay
