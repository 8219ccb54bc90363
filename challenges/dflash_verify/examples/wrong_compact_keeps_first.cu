// fails: compact_out_of_order
// Only shortens the cache, which keeps the first nodes: the path of a chain and of no other tree.
#define dv_compact naive_dv_compact
#include "naive.cu"
#undef dv_compact

extern "C" int dv_compact(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu,
                          const int32_t* acc_node, const int32_t* n_acc, int64_t row_bytes,
                          int32_t caches, void* const* kv) {
  std::vector<std::int32_t> none(static_cast<std::size_t>(std::max(B, 0)));
  const int status = naive_dv_compact(ctx, B, P, cu, acc_node, n_acc, row_bytes, 0, nullptr);
  if (status != ASSAY_OK) return status;
  return naive_dv_compact(ctx, B, P, cu, acc_node, none.data(), row_bytes, caches, kv);
}
