// fails: accumulate_twice basic
// += into dgamma and dbeta, which the caller never zeroed.
#include "around_naive.cuh"

__global__ void add(std::int64_t D, const float* old_gamma, const float* old_beta, float* dgamma,
                    float* dbeta) {
  const std::int64_t column = thread_index();
  if (column >= D) return;
  dgamma[column] += old_gamma[column];
  dbeta[column] += old_beta[column];
}

struct Bug : Right {
  static int backward(const Backward& call) {
    const bool adds = check(call.p, true) == ASSAY_OK && call.p->rows * call.p->D > 0 &&
                      call.dgamma != nullptr && call.dbeta != nullptr;
    if (!adds) return call.naive();
    const std::int64_t D = call.p->D;
    const std::size_t bytes = static_cast<std::size_t>(D) * sizeof(float);
    const Scratch old(call.ctx, 2 * D);
    if (old.data() == nullptr) return ASSAY_ENOMEM;
    const cudaStream_t stream = stream_of(call.ctx);
    cudaMemcpyAsync(old.data(), call.dgamma, bytes, cudaMemcpyDeviceToDevice, stream);
    cudaMemcpyAsync(old.data() + D, call.dbeta, bytes, cudaMemcpyDeviceToDevice, stream);
    const int status = call.naive();
    if (status != ASSAY_OK) return status;
    add<<<blocks(D), kThreads, 0, stream>>>(D, old.data(), old.data() + D, call.dgamma, call.dbeta);
    return launch_status();
  }
};

LAYER_NORM(Bug)
