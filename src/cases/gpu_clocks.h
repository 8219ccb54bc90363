// Tracks the clocks of a real GPU while a case is timed on it.
#pragma once

#include <optional>
#include <vector>

#include "assay/challenge.h"
#include "assay/gpu_state.h"

namespace assay::cases {

// Whether power, heat or a fault throttled the clocks between the two states or at the second one;
// nothing if the second does not tell.
std::optional<bool> is_throttled(const GpuState& before, const GpuState& after);

class GpuClocks {
 public:
  void see(const GpuState&);
  void count(bool throttled);  // a repetition, unless nothing tells

  // Only of what was seen.
  std::vector<Metric> metrics() const;

 private:
  struct Range {
    std::optional<double> low, high;
    void take(const std::optional<double>&);
  };
  Range clock_, temperature_;
  int repetitions_ = 0, throttled_ = 0;
};

}  // namespace assay::cases
