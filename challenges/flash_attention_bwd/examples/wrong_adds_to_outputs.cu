// fails: double_call causal_64
// += into dq, which the caller never zeroed, as where blocks of keys add to it with atomics.
#include "around_naive.cuh"

__global__ void add(fa_params p, std::int64_t rows, const float* before, float* dq) {
  const std::int64_t row = thread_index();
  if (row >= rows) return;
  const std::int64_t at = offset(p, row, p.sq);
  for (std::int64_t d = 0; d < p.D; ++d) dq[at + d] += before[at + d];
}

static int answer(const Call& call) {
  if (call.p == nullptr || call.dq == nullptr || call.p->D <= 0 || call.queries() <= 0)
    return call.naive();
  const std::int64_t n = extent(*call.p, call.p->Hq, call.p->Nq, call.p->D, call.p->sq);
  const Scratch before(call.ctx, n);
  if (before.data() == nullptr) return ASSAY_ENOMEM;
  cudaMemcpyAsync(before.data(), call.dq, static_cast<std::size_t>(n) * sizeof(float),
                  cudaMemcpyDeviceToDevice, call.stream());
  const int status = call.naive();
  if (status != ASSAY_OK) return status;
  add<<<blocks(call.queries()), kThreads, 0, call.stream()>>>(
      *call.p, call.queries(), before.data(), static_cast<float*>(call.dq));
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
