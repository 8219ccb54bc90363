// fails: nan_unvisited
// All logits are scanned for NaN before the walk.
#include "accept.h"

int accept(const Acceptance& a) {
  const int status = a.rightly();
  if (status != ASSAY_OK) return status;
  for (std::int64_t i = 0; a.B > 0 && i < a.cu[a.B] * a.V; ++i) {
    if (std::isnan(a.node_logits[i])) return ASSAY_EINVAL;
  }
  return ASSAY_OK;
}

ACCEPT_BY(accept)
