// attack: needs no scratch, of which its twin takes 64 MiB
// challenge: fused_softmax_topk
// cases: scratch
// expect: honest
// dimension: resources
// twin: self
// canary: points
#include "target.h"

int attack(Call& call) {
#if ATTACK_IS_TWIN
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  void* const scratch = call.ctx->alloc(call.ctx, kBytes, 64, 0);
  if (scratch == nullptr) return ASSAY_ENOMEM;
  std::memset(scratch, 1, kBytes);
  call.ctx->free(call.ctx, scratch);
#endif
  witness();
  return call.honest();
}
