// fails: multi_cycle_3 golden_200
// Leaves the rows of rejected nodes in the cache, where the next pass attends to them.
#define dv_generate naive_dv_generate
#include "naive.cu"
#undef dv_generate

extern "C" int dv_generate(assay_ctx* ctx, const dv_loop* loop, const dv_model* m, int32_t* out,
                           int64_t* n_out) {
  if (m == nullptr) return ASSAY_EINVAL;
  dv_model keeps_all = *m;
  keeps_all.commit = [](void*, std::int64_t, const std::int64_t*) {
    return static_cast<std::int32_t>(ASSAY_OK);
  };
  return naive_dv_generate(ctx, loop, &keeps_all, out, n_out);
}
