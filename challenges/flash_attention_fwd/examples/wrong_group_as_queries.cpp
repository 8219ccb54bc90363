// fails: one_query_grouped one_query_grouped_bshd one_query_padded
// One query of grouped heads: those of a group become the queries of one head, so that a key is read
// once for all of them. The strides stay as they were.
#define fa_forward naive_fa_forward
#include "naive.cpp"
#undef fa_forward

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  if (!valid(p, q, k, v, o) || p->Nq != 1 || p->Hkv == 0 || p->Hq == p->Hkv || p->window > 0)
    return naive_fa_forward(ctx, p, q, k, v, o, lse);
  fa_params grouped = *p;
  grouped.Nq = p->Hq / p->Hkv;
  grouped.Hq = p->Hkv;
  grouped.causal = 0;
  return naive_fa_forward(ctx, &grouped, q, k, v, o, lse);
}
