// The least time in which a machine could do a timed case: what the problem needs over what the
// machine can do (the roofline: S. Williams, A. Waterman, D. Patterson, CACM 52(4), 2009). Of a
// timed case of an answer in C++ both stand among its metrics.
#pragma once

#include <optional>
#include <span>

#include "assay/results.h"

namespace assay {

// Of the machine, measured with the case: bytes of memory traffic and fp32 operations a second.
inline constexpr const char *kRoofBytes = "roof_bytes_per_s", *kRoofFlops = "roof_flops_per_s";

// Seconds; nothing where a metric is missing or not positive.
std::optional<double> floor_seconds(std::span<const Metric> metrics);

}  // namespace assay
