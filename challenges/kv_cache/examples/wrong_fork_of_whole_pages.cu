// fails: fork_diverge many_forks
// A fork copies whole pages of 16 tokens; what is left of the last one holds zeros.
#define kvc_fork naive_kvc_fork
#include "naive.cu"
#undef kvc_fork

extern "C" int kvc_fork(kvc* cache, std::int32_t src, std::int32_t* dst) {
  const int status = naive_kvc_fork(cache, src, dst);
  for (std::int32_t l = 0; status == ASSAY_OK && l < cache->c.n_layers; ++l) {
    const Layer& layer = cache->layer(*dst, l);
    const std::int64_t whole = layer.length / 16 * 16, row = cache->row();
    const auto bytes = static_cast<std::size_t>((layer.length - whole) * row) * sizeof(float);
    if (bytes == 0) continue;
    cudaMemsetAsync(layer.k + whole * row, 0, bytes, cache->stream());
    cudaMemsetAsync(layer.v + whole * row, 0, bytes, cache->stream());
  }
  return status;
}
