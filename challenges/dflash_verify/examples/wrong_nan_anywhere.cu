// fails: nan_unvisited
// All logits are scanned for NaN before the walk.
#include "around_accept.cuh"

__global__ void scan(std::int64_t n, const float* logits, std::int32_t* found) {
  if (thread_index() < n && isnan(logits[thread_index()])) atomicOr(found, 1);
}

static int answer(Acceptance call) {
  const bool scans = good_batch(call.B, call.cu, call.parent) && call.B > 0 && call.V > 0 &&
                     call.node_logits != nullptr && call.cu[call.B] > 0;
  if (!scans) return call.naive();
  const std::int64_t n = call.cu[call.B] * call.V;
  const std::int32_t none = 0;
  const DeviceArray<std::int32_t> found(call.ctx, 1, &none);
  if (!found) return ASSAY_ENOMEM;
  scan<<<blocks(n), kThreads, 0, stream_of(call.ctx)>>>(n, call.node_logits, found.data());
  return found.read(1)[0] != 0 ? static_cast<int>(ASSAY_EINVAL) : call.naive();
}
