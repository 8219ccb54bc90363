// fails: attention_basic attention_gqa
// The queries are staged on a stream for copies, for which the attention does not wait.
#define dv_attention naive_dv_attention
#include "naive.cu"
#undef dv_attention

static cudaStream_t copy_stream() {
  static const cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return made;
  }();
  return stream;
}

extern "C" int dv_attention(assay_ctx* ctx, const fa_params* p, const int64_t* P, const int64_t* cu,
                            const int32_t* parent, const void* q, const void* const* kc,
                            const void* const* vc, void* o, float* lse) {
  const bool stages = p != nullptr && p->B > 0 && p->B <= INT_MAX && p->Hq > 0 && p->D > 0 &&
                      good_offsets(static_cast<std::int32_t>(p->B), cu) && q != nullptr;
  if (!stages) return naive_dv_attention(ctx, p, P, cu, parent, q, kc, vc, o, lse);
  const std::int64_t n = cu[p->B] * p->Hq * p->D;
  const DeviceArray<float> staged(ctx, n);
  if (!staged) return ASSAY_ENOMEM;
  cudaMemcpyAsync(staged.data(), q, static_cast<std::size_t>(n) * sizeof(float),
                  cudaMemcpyDeviceToDevice, copy_stream());
  return naive_dv_attention(ctx, p, P, cu, parent, staged.data(), kc, vc, o, lse);
}
