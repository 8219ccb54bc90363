// fails: linear ste_grad
// The gradient stops at weights that are zero, as if the rounding were a part of the derivative.
#include "around_linear.cuh"

__global__ void stop_at_zeros(std::int64_t n, const float* w, float* gradient) {
  if (thread_index() < n && w[thread_index()] == 0) gradient[thread_index()] = 0;
}

static int answer(const Product& call) {
  Arena arena(call.ctx);
  const std::int64_t n = call.rows * call.cols;
  float* const w = arena.take(n);
  int status = tt_dequantize(call.ctx, call.rows, call.cols, call.blocks, w);
  if (status == ASSAY_OK) status = call.naive();
  if (status != ASSAY_OK) return status;
  stop_at_zeros<<<threads(n), kThreads, 0, arena.stream()>>>(n, w, call.dw_latent);
  return launch_status();
}
