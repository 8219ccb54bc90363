// fails: linear odd_linear
// The activations are cut to the eleven bits that tensor cores read of a TF32.
#include "around_linear.cuh"

__global__ void cut(std::int64_t n, const float* from, float* to) {
  if (thread_index() >= n) return;
  to[thread_index()] = __uint_as_float(__float_as_uint(from[thread_index()]) & 0xffffe000u);
}

static int answer(const Product& call) {
  Arena arena(call.ctx);
  const std::int64_t n = call.M * call.cols;
  float* const x = arena.take(n);
  cut<<<threads(n), kThreads, 0, arena.stream()>>>(n, call.x, x);
  Product narrow = call;
  narrow.x = x;
  return narrow.naive();
}
