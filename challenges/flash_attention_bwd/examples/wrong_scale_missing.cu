// fails: scale_missing scale_not_default
// dq without the factor scale.
#include "around_naive.cuh"

struct Unscale {
  __device__ void operator()(const fa_params& p, std::int64_t, float* dq) const {
    for (std::int64_t d = 0; d < p.D; ++d) dq[d] /= p.scale;
  }
};

static int answer(const Call& call) {
  const int status = call.naive();
  if (status != ASSAY_OK || call.queries() == 0) return status;
  change_rows<Unscale><<<blocks(call.queries()), kThreads, 0, call.stream()>>>(
      *call.p, call.queries(), call.p->sq, static_cast<float*>(call.dq));
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
