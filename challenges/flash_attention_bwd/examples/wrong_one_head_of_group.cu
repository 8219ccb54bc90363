// fails: gqa gqa_8_2
// dk and dv come from the first query head of each group: the blocks of the others store nothing.
#include "around_naive.cuh"

struct FirstOfGroup {
  __device__ void operator()(const fa_params& p, std::int64_t row, float* dout) const {
    if (row / p.Nq % p.Hq % (p.Hq / p.Hkv) == 0) return;
    for (std::int64_t d = 0; d < p.Dv; ++d) dout[d] = 0;
  }
};

static int answer(const Call& call) {
  const int status = call.naive();
  if (status != ASSAY_OK || call.queries() == 0) return status;
  const std::int64_t n = extent(*call.p, call.p->Hq, call.p->Nq, call.p->Dv, call.p->so);
  const std::int64_t n_q = extent(*call.p, call.p->Hq, call.p->Nq, call.p->D, call.p->sq);
  const Scratch dout(call.ctx, n), no_dq(call.ctx, n_q);
  if (dout.data() == nullptr || no_dq.data() == nullptr) return ASSAY_ENOMEM;
  cudaMemcpyAsync(dout.data(), call.dout, static_cast<std::size_t>(n) * sizeof(float),
                  cudaMemcpyDeviceToDevice, call.stream());
  change_rows<FirstOfGroup><<<blocks(call.queries()), kThreads, 0, call.stream()>>>(
      *call.p, call.queries(), call.p->so, dout.data());
  Call of_keys = call;
  of_keys.dout = dout.data();
  of_keys.dq = no_dq.data();
  return of_keys.naive();
}
