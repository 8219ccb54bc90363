// The least time in which the machine could do a timed case: what the problem needs over what the
// machine can do (the roofline: S. Williams, A. Waterman, D. Patterson, CACM 52(4), 2009). Timed
// cases of answers in C++ have both among their metrics.
#pragma once

#include <optional>
#include <span>

#include "assay/results.h"

namespace assay {

// The machine's bytes of memory traffic and fp32 operations per second, measured with the case.
inline constexpr const char *kRoofBytes = "roof_bytes_per_s", *kRoofFlops = "roof_flops_per_s";

// In seconds; absent if a metric is missing or not positive.
std::optional<double> floor_seconds(std::span<const Metric> metrics);

}  // namespace assay
