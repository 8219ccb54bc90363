// fails: sibling_visible sibling_leak
// A causal mask over the nodes in the order of the list: siblings and cousins see each other.
#define dv_attention naive_dv_attention
#include "naive.cu"
#undef dv_attention

extern "C" int dv_attention(assay_ctx* ctx, const fa_params* p, const int64_t* P, const int64_t* cu,
                            const int32_t* parent, const void* q, const void* const* kc,
                            const void* const* vc, void* o, float* lse) {
  std::vector<std::int32_t> chain;
  const bool good = p != nullptr && p->B >= 0 && p->B <= INT_MAX &&
                    good_batch(static_cast<std::int32_t>(p->B), cu, parent);
  for (std::int64_t b = 0; good && b < p->B; ++b) {
    for (std::int64_t i = cu[b]; i < cu[b + 1]; ++i)
      chain.push_back(static_cast<std::int32_t>(i - cu[b] - 1));
  }
  return naive_dv_attention(ctx, p, P, cu, good ? chain.data() : parent, q, kc, vc, o, lse);
}
