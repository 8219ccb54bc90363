// fails: invalid_compact_descending
// Checks each row as it moves it: what is refused at the third node has changed the cache by then.
#define dv_compact naive_dv_compact
#include "naive.cpp"
#undef dv_compact

extern "C" int dv_compact(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu,
                          const int32_t* acc_node, const int32_t* n_acc, int64_t row_bytes,
                          int32_t caches, void* const* kv) {
  if (B > 0 && n_acc != nullptr && acc_node != nullptr && valid_cu(B, cu) && valid_prefixes(B, P) &&
      !has_null(std::int64_t{B} * caches, kv)) {
    for (std::int32_t b = 0; b < B; ++b) {
      for (std::int32_t c = 0; c < caches; ++c) {
        auto* rows = static_cast<char*>(kv[std::int64_t{b} * caches + c]) + P[b] * row_bytes;
        std::int32_t last = -1;
        for (std::int32_t j = 0; j < n_acc[b] && j < cu[b + 1] - cu[b]; ++j) {
          const std::int32_t node = acc_node[cu[b] + j];
          if (node <= last || node >= cu[b + 1] - cu[b]) return ASSAY_EINVAL;
          std::memmove(rows + j * row_bytes, rows + node * row_bytes,
                       static_cast<std::size_t>(row_bytes));
          last = node;
        }
      }
    }
    return ASSAY_OK;
  }
  return naive_dv_compact(ctx, B, P, cu, acc_node, n_acc, row_bytes, caches, kv);
}
