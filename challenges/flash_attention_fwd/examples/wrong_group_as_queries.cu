// fails: one_query_grouped one_query_grouped_bshd one_query_padded
// One query of grouped heads: those of a group become the queries of one head, so that a key is read
// once for all of them. The strides stay as they were.
#include "around_naive.cuh"

static int answer(const Call& call) {
  return with_params(call, [](fa_params& p) {
    if (p.Nq != 1 || p.Hkv == 0 || p.Hq == p.Hkv) return;
    p.Nq = p.Hq / p.Hkv;
    p.Hq = p.Hkv;
    p.causal = 0;
  });
}
