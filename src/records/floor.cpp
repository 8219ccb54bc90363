#include "records/floor.h"

#include <algorithm>

#include "assay/challenge.h"
#include "records/lookup.h"
#include "records/simulated_work.h"

namespace assay {

std::optional<double> floor_seconds(std::span<const Metric> metrics) {
  const auto least = least_work(metrics);
  const double *bytes = find_metric(metrics, kRoofBytes), *flops = find_metric(metrics, kRoofFlops);
  if (!least || !bytes || !flops || !(*bytes > 0) || !(*flops > 0)) return std::nullopt;
  const double seconds = std::max(least->bytes / *bytes, least->flops / *flops);
  return seconds > 0 ? std::optional(seconds) : std::nullopt;
}

}  // namespace assay
