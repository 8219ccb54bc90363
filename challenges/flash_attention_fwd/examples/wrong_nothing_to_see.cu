// fails: nq_gt_nk
// A query that sees no key divides 0 by 0.
#include "around_naive.cuh"

__global__ void spoil(fa_params p, float* o, float* lse) {
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row >= p.B * p.Hq * p.Nq) return;
  const std::int64_t i = row % p.Nq, h = row / p.Nq % p.Hq, b = row / p.Nq / p.Hq;
  if (p.causal == 0 || i + p.Nk - p.Nq + 1 > 0) return;
  for (std::int64_t d = 0; d < p.Dv; ++d) o[b * p.so.b + h * p.so.h + i * p.so.n + d] = NAN;
  if (lse != nullptr) lse[row] = NAN;
}

static int answer(const Call& call) {
  const int status = call.naive();
  const std::int64_t rows = status == ASSAY_OK ? call.p->B * call.p->Hq * call.p->Nq : 0;
  if (rows == 0) return status;
  spoil<<<static_cast<unsigned>((rows + kThreads - 1) / kThreads), kThreads, 0,
          static_cast<cudaStream_t>(call.ctx->stream)>>>(*call.p, static_cast<float*>(call.o),
                                                         call.lse);
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
