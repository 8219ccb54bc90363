// fails: basic large_vocabulary
// The model's rows are brought to the search on a stream for copies, for which its kernel does not
// wait.
#include "around_search.cuh"

static cudaStream_t copy_stream() {
  static const cudaStream_t stream = [] {
    cudaStream_t made = nullptr;
    cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
    return made;
  }();
  return stream;
}

static int answer(const Search& call) {
  if (!call.has_items()) return call.naive();
  const std::int64_t most = std::int64_t{call.p->B} * call.p->K * call.lm->V;
  const std::size_t bytes = static_cast<std::size_t>(most) * sizeof(float);
  auto* const staged = static_cast<float*>(call.ctx->alloc(call.ctx, bytes, 256, 1));
  if (staged == nullptr) return ASSAY_ENOMEM;
  const int status = with_model(call, [staged](const assay_lm& lm, Step step) {
    float* const out = step.out;
    step.out = staged;
    const int of_model = step.ask(lm);
    cudaStreamSynchronize(static_cast<cudaStream_t>(step.ctx->stream));
    cudaMemcpyAsync(out, staged, sizeof(float) * static_cast<std::size_t>(step.n) * lm.V,
                    cudaMemcpyDeviceToDevice, copy_stream());
    return of_model;
  });
  call.ctx->free(call.ctx, staged);
  return status;
}
