// fails: lossless_chi2_b sampling_b
// After a rejection draws from the target's own distribution instead of the residual: likely tokens
// get a second chance and the output is no longer the target's.
#include "rejection.h"

std::int32_t after_rejection(const Rejection& r) { return draw(r.p, r.V, r.u); }

REJECT_WITH(after_rejection)
