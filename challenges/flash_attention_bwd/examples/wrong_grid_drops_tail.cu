// fails: n1 uneven_63 uneven_65 uneven_300
// The grid has only whole blocks of queries: dq of those after them is not written.
#include "around_naive.cuh"

__global__ void copy_rows(fa_params p, std::int64_t rows, const float* from, float* to) {
  const std::int64_t row = thread_index();
  if (row >= rows) return;
  const std::int64_t at = offset(p, row, p.sq);
  for (std::int64_t d = 0; d < p.D; ++d) to[at + d] = from[at + d];
}

static int answer(const Call& call) {
  if (call.p == nullptr || call.dq == nullptr || call.p->D <= 0 || call.queries() <= 0)
    return call.naive();
  const Scratch all(call.ctx, extent(*call.p, call.p->Hq, call.p->Nq, call.p->D, call.p->sq));
  if (all.data() == nullptr) return ASSAY_ENOMEM;
  Call complete = call;
  complete.dq = all.data();
  const int status = complete.naive();
  const std::int64_t whole = call.queries() / kThreads * kThreads;
  if (status != ASSAY_OK || whole == 0) return status;
  copy_rows<<<blocks(whole), kThreads, 0, call.stream()>>>(*call.p, whole, all.data(),
                                                           static_cast<float*>(call.dq));
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}
