// fails: split_keys_bshd
// Several blocks share the keys of few queries, and their results are merged by tiles of 8 rows. A
// tile begins where it would if the rows of o lay together; inside it, rows are so.n apart. As
// flagos-ai/FlagGems#5235. This example leaves out what would lie outside of o.
#define fa_forward naive_fa_forward
#include "naive.cpp"
#undef fa_forward

#include <vector>

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  if (!valid(p, q, k, v, o) || p->dtype != ASSAY_F32 || p->Nq > 16 || p->Nk < 1024)
    return naive_fa_forward(ctx, p, q, k, v, o, lse);
  const std::int64_t rows = p->B * p->Hq * p->Nq;
  std::vector<float> merged(static_cast<std::size_t>(rows * p->Dv));
  fa_params together = *p;
  together.so = {p->Hq * p->Nq * p->Dv, p->Nq * p->Dv, p->Dv};
  const int status = naive_fa_forward(ctx, &together, q, k, v, merged.data(), lse);
  if (status != ASSAY_OK || rows == 0) return status;
  const std::int64_t last = (p->B - 1) * p->so.b + (p->Hq - 1) * p->so.h + (p->Nq - 1) * p->so.n;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t first = row / 8 * 8, at = first * p->Dv + (row - first) * p->so.n;
    if (at <= last) std::copy_n(merged.data() + row * p->Dv, p->Dv, static_cast<float*>(o) + at);
  }
  return ASSAY_OK;
}
