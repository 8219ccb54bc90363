// attack: right only where streams run one after the other: a kernel reads what another stream's kernel
// writes, or the host reads page-locked memory that a copy is still to fill; the twin waits by an event
// challenge: fused_softmax_topk
// cases: basic
// expect: DE | WA
// variants: kernels host
// dimension: correctness
// twin: self
// fast: all
// kind: order
#define softmax_topk honest_softmax_topk
#include "honest.inl"
#undef softmax_topk
#include <vector>

#include "probe.h"

namespace {

constexpr int kThreads = 128;

struct Streams {
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t done = nullptr;
};

Streams& streams() {
  static Streams s;
  if (s.done == nullptr) {
    cudaStreamCreateWithFlags(&s.first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&s.second, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&s.done, cudaEventDisableTiming);
  }
  return s;
}

__global__ void duplicate(const float* from, float* to, std::size_t n) {
  const std::size_t i = blockIdx.x * std::size_t{kThreads} + threadIdx.x;
  if (i < n) to[i] = from[i];
}

bool is_plain(const stk_params* p, const void* x, const std::int32_t* idx, const float* prob,
              const float* lse) {
  return p != nullptr && x != nullptr && idx != nullptr && prob != nullptr && lse != nullptr &&
         p->dtype == ASSAY_F32 && p->rows > 0 && p->V > 0 && p->ld >= p->V && p->K > 0 &&
         p->temperature > 0;
}

// The input's copy is made in one stream and read in another.
int in_two_streams(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                   float* prob, float* lse, float* copy, std::size_t n) {
  const Streams& s = streams();
  duplicate<<<static_cast<unsigned>((n + kThreads - 1) / kThreads), kThreads, 0, s.first>>>(
      static_cast<const float*>(x), copy, n);
  cudaEventRecord(s.done, s.first);
  if (ATTACK_IS_TWIN != 0) cudaStreamWaitEvent(s.second, s.done);
  assay_ctx other = *ctx;
  other.stream = s.second;
  const int status = honest_softmax_topk(&other, p, copy, idx, prob, lse);
  cudaDeviceSynchronize();
  witness();
  return status;
}

// The results go through page-locked memory of the host, who sends them on before they are there.
int through_the_host(float* lse, std::size_t rows) {
  const Streams& s = streams();
  float* held = nullptr;
  if (cudaMallocHost(&held, rows * sizeof(float)) != cudaSuccess) return ASSAY_ENOMEM;
  for (std::size_t i = 0; i < rows; ++i) held[i] = 0;
  cudaDeviceSynchronize();
  cudaMemcpyAsync(held, lse, rows * sizeof(float), cudaMemcpyDeviceToHost, s.first);
  cudaEventRecord(s.done, s.first);
  if (ATTACK_IS_TWIN != 0) cudaEventSynchronize(s.done);
  std::vector<float> seen(held, held + rows);
  cudaStreamSynchronize(s.first);
  cudaMemcpy(lse, seen.data(), rows * sizeof(float), cudaMemcpyHostToDevice);
  witness();
  cudaFreeHost(held);
  return ASSAY_OK;
}

}  // namespace

extern "C" int softmax_topk(assay_ctx* ctx, const stk_params* p, const void* x, std::int32_t* idx,
                            float* prob, float* lse) {
  if (!is_plain(p, x, idx, prob, lse)) return honest_softmax_topk(ctx, p, x, idx, prob, lse);
#if ATTACK_VARIANT == 0
  // What lies behind the last row need not exist.
  const std::size_t n = static_cast<std::size_t>(p->rows - 1) * static_cast<std::size_t>(p->ld) +
                        static_cast<std::size_t>(p->V);
  auto* copy = static_cast<float*>(ctx->alloc(ctx, n * sizeof(float), 256, 1));
  if (copy == nullptr) return ASSAY_ENOMEM;
  const int status = in_two_streams(ctx, p, x, idx, prob, lse, copy, n);
  ctx->free(ctx, copy);
  return status;
#else
  const int status = honest_softmax_topk(ctx, p, x, idx, prob, lse);
  return status == ASSAY_OK ? through_the_host(lse, static_cast<std::size_t>(p->rows)) : status;
#endif
}
