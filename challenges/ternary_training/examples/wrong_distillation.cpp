// fails: distill distill_cold
// Without the square of the temperature, and the two distributions the wrong way round.
#define tt_distill_loss naive_tt_distill_loss
#include "naive.cpp"
#undef tt_distill_loss

extern "C" int tt_distill_loss(assay_ctx* ctx, int64_t M, int64_t V, float temperature,
                               const float* teacher, const float* student, float* loss,
                               float* gradient) {
  const int status =
      naive_tt_distill_loss(ctx, M, V, temperature, student, teacher, loss, gradient);
  if (status != ASSAY_OK) return status;
  for (Index m = 0; m < M; ++m) loss[m] /= temperature * temperature;
  for (Index i = 0; i < M * V; ++i) gradient[i] /= -temperature * temperature;
  return ASSAY_OK;
}
