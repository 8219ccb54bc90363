// fails: one_block_linear odd_linear
// The grid has only whole blocks of threads: what they leave over of y is not written.
#include "around_linear.cuh"

static int answer(const Product& call) {
  Arena arena(call.ctx);
  const std::int64_t n = call.M * call.rows;
  Product complete = call;
  complete.y = arena.take(n);
  const int status = complete.naive();
  if (status == ASSAY_OK && n >= kThreads) arena.copy(call.y, complete.y, n / kThreads * kThreads);
  return status;
}
