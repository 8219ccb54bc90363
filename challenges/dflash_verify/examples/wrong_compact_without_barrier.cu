// fails: compact_out_of_order
// The threads of a block move the bytes of all rows together, and nothing keeps a warp from
// overwriting a row that another has yet to read.
#define dv_compact naive_dv_compact
#include "naive.cu"
#undef dv_compact

__global__ void compact_together(std::int64_t row_bytes, std::int32_t count,
                                 const std::int32_t* path, unsigned char* rows) {
  for (std::int64_t at = threadIdx.x; at < count * row_bytes; at += blockDim.x)
    rows[at] = rows[path[at / row_bytes] * row_bytes + at % row_bytes];
}

extern "C" int dv_compact(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu,
                          const int32_t* acc_node, const int32_t* n_acc, int64_t row_bytes,
                          int32_t caches, void* const* kv) {
  // No rows are moved where none are accepted, but arguments are looked at.
  const std::vector<std::int32_t> none(static_cast<std::size_t>(std::max(B, 0)));
  const int status = naive_dv_compact(ctx, B, P, cu, acc_node, n_acc, row_bytes, 0, nullptr);
  if (status != ASSAY_OK || B == 0 || cu[B] == 0) return status;
  if (const int caches_status =
          naive_dv_compact(ctx, B, P, cu, acc_node, none.data(), row_bytes, caches, kv);
      caches_status != ASSAY_OK) {
    return caches_status;
  }
  const DeviceArray<std::int32_t> path(ctx, cu[B], acc_node);
  if (!path) return ASSAY_ENOMEM;
  for (std::int64_t c = 0; row_bytes > 0 && c < std::int64_t{B} * caches; ++c) {
    const std::int64_t b = c / caches;
    compact_together<<<1, kThreads, 0, stream_of(ctx)>>>(
        row_bytes, n_acc[b], path.data() + cu[b],
        static_cast<unsigned char*>(kv[c]) + P[b] * row_bytes);
  }
  return launch_status();
}
