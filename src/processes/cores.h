// Which cores workers run on.
#pragma once

#include <optional>
#include <vector>

#include "processes/protocol_violation.h"

namespace assay::processes {

// `n` of the cores that this program may use, in ascending order; all of them if there are fewer.
// All workers of one thread share its cores, so that implementations are compared on the same
// cores. Threads that drive workers side by side get different cores as long as there are enough.
// Separate physical cores are handed out before a second hardware thread of the same core.
std::vector<int> worker_cores(int n);

// The violation, if a call that may keep `threads` cores busy kept more busy. The slack is far
// above any disagreement between the clock and the kernel's account of processor time.
std::optional<ProtocolViolation> too_many_cores(double processor_s, double wall_s, int threads);

}  // namespace assay::processes
