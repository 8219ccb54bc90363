// fails: gamma_forgotten gamma_zero_neg basic
// g = dy: gamma is left out of dx.
#include "around_naive.cuh"

__global__ void fill_ones(std::int64_t D, float* ones) {
  if (thread_index() < D) ones[thread_index()] = 1;
}

struct Bug : Right {
  static int backward(Backward call) {
    if (check(call.p, true) != ASSAY_OK || call.p->D == 0 || call.gamma == nullptr)
      return call.naive();
    const Scratch ones(call.ctx, call.p->D);
    if (ones.data() == nullptr) return ASSAY_ENOMEM;
    fill_ones<<<blocks(call.p->D), kThreads, 0, stream_of(call.ctx)>>>(call.p->D, ones.data());
    call.gamma = ones.data();
    return call.naive();
  }
};

LAYER_NORM(Bug)
