// Which cores workers run on.
#pragma once

#include <optional>
#include <vector>

#include "processes/protocol_violation.h"

namespace assay::processes {

// `n` cores of those that this program may use, ascending; all of them where there are no more. One
// thread's workers share theirs, so that what is compared runs on the same cores; threads that
// drive workers side by side get different ones as far as there are enough. Cores of their own come
// before two threads of one core.
std::vector<int> worker_cores(int n);

// The violation of a call that may keep `threads` cores busy and kept more of them busy, if it did.
// What the clock and the kernel's account of processor time may differ by is far below the slack.
std::optional<ProtocolViolation> too_many_cores(double processor_s, double wall_s, int threads);

}  // namespace assay::processes
