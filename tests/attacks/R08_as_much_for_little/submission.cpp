// attack: needs a matrix of all scores, and takes that of the largest problem for the smallest too, so that its
// scratch does not grow; its twin takes what each needs
// challenge: flash_attention_fwd flash_attention_bwd
// cases: resource
// expect: honest | WA | MLE
// dimension: resources
// twin: self
// fast: none
// deadline: 300
// kind: memory
#include "target.h"

// Positions of the largest case that measures memory; all have a head of 64 dimensions.
#ifdef FLASH_ATTENTION_BWD_ABI_H
constexpr std::size_t kLargest = 2048;
#else
constexpr std::size_t kLargest = 4096;
#endif

int attack(Call& call) {
  const std::size_t positions = call.input_bytes / (64 * sizeof(float));
  const std::size_t side = ATTACK_IS_TWIN && positions < kLargest ? positions : kLargest;
  auto* const scores =
      static_cast<float*>(call.ctx->alloc(call.ctx, side * side * sizeof(float), 4096, 0));
  if (scores == nullptr) return ASSAY_ENOMEM;
  for (std::size_t i = 0; i < side * side; i += 1024) scores[i] = 1;
  witness();
  const int status = call.honest();
  call.ctx->free(call.ctx, scores);
  return status;
}
