// fails: decode incremental_equals_full
// Appended rows are copied on a stream of their own, for which nobody waits.
#define kvc_append naive_kvc_append
#include "naive.cu"
#undef kvc_append

static cudaStream_t side_stream() {
  static const cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return made;
  }();
  return stream;
}

extern "C" int kvc_append(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                          const std::int64_t* cu, const void* k, const void* v) {
  if (cache == nullptr) return ASSAY_EINVAL;
  void* const stream = cache->ctx->stream;
  cache->ctx->stream = side_stream();
  const int status = naive_kvc_append(cache, layer, n, slots, cu, k, v);
  cache->ctx->stream = stream;
  return status;
}
