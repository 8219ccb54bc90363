// fails: sampling_b_impossible_token
// Accepts a drafted token if u q <= p, where u q must be less: a uniform number of 0 accepts even
// what the target never emits.
#include "accept.h"

int accept(const Acceptance& a) {
  const int status = a.rightly();
  if (status != ASSAY_OK || a.mode() != DV_SAMPLE_IID) return status;
  const Scratch<double> p(a.ctx, a.V);
  for (std::int32_t b = 0; b < a.B; ++b) {
    const std::int32_t* const end = a.parent + a.cu[b + 1];
    const std::int32_t* const root = std::find(a.parent + a.cu[b], end, -1);
    if (a.n_acc[b] > 0 || root == end) continue;
    softmax(a.root(b), a.V, a.sampling->temperature, p.data());
    const std::int32_t x = a.token[root - a.parent];
    const double q = a.sampling->root_q[std::int64_t{b} * a.V + x];
    if (a.sampling->uniform[b * a.sampling->u_item] * q > p.data()[x]) continue;
    a.acc_node[a.cu[b]] = static_cast<std::int32_t>(root - a.parent - a.cu[b]);
    a.n_acc[b] = 1;
  }
  return ASSAY_OK;
}

ACCEPT_BY(accept)
