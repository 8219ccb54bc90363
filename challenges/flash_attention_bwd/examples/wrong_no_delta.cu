// fails: dq_zero_constV sum_dk_zero
// dS = P dP: delta is left out, as it is where o is 0.
#include "around_naive.cuh"

static int answer(const Call& given) {
  Call call = given;
  if (call.p == nullptr || call.o == nullptr || call.p->Dv <= 0) return call.naive();
  const std::int64_t n = extent(*call.p, call.p->Hq, call.p->Nq, call.p->Dv, call.p->so);
  const Scratch zeros(call.ctx, n);
  if (zeros.data() == nullptr) return ASSAY_ENOMEM;
  cudaMemsetAsync(zeros.data(), 0, static_cast<std::size_t>(n) * sizeof(float), call.stream());
  call.o = zeros.data();
  return call.naive();
}
