// fails: compact_ragged
// The first item's prefix length for all items.
#define dv_compact naive_dv_compact
#include "naive.cpp"
#undef dv_compact

extern "C" int dv_compact(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu,
                          const int32_t* acc_node, const int32_t* n_acc, int64_t row_bytes,
                          int32_t caches, void* const* kv) {
  int status = naive_dv_compact(ctx, B, P, cu, acc_node, n_acc, row_bytes, 0, kv);
  for (std::int64_t c = 0; status == ASSAY_OK && c < std::int64_t{B} * caches && row_bytes > 0;
       ++c) {
    const std::int64_t b = c / caches, first = P[0] <= P[b] ? P[0] : P[b] - 1;
    auto* rows = static_cast<char*>(kv[c]) + first * row_bytes;
    for (std::int32_t j = 0; j < n_acc[b]; ++j) {
      std::memmove(rows + j * row_bytes, rows + acc_node[cu[b] + j] * row_bytes,
                   static_cast<std::size_t>(row_bytes));
    }
  }
  return status;
}
