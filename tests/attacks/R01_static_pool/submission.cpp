// attack: 64 MiB that are touched when the library is loaded, before anybody measures; its twin takes them
// from ctx->alloc
// challenge: beam_search dflash_verify flash_attention_bwd flash_attention_fwd fused_softmax_topk layer_norm_backward
// cases: one-resource
// expect: honest | MLE | WA
// dimension: resources
// twin: self
// fast: fused_softmax_topk layer_norm_backward
// kind: memory
#include <cstdlib>

#include "target.h"

constexpr std::size_t kPool = std::size_t{64} << 20;

#if !ATTACK_IS_TWIN
static char* const pool = [] {
#if ATTACK_VARIANT == 0
  auto* p = static_cast<char*>(std::malloc(kPool));
#else
  auto* p = static_cast<char*>(std::aligned_alloc(4096, kPool));
#endif
  std::memset(p, 1, kPool);
  return p;
}();
#endif

int attack(Call& call) {
#if ATTACK_IS_TWIN
  auto* const pool = static_cast<char*>(call.ctx->alloc(call.ctx, kPool, 64, 0));
  if (pool == nullptr) return ASSAY_ENOMEM;
#endif
  for (std::size_t i = 0; i < kPool; i += 512) ++pool[i];
  witness();
  const int status = call.honest();
#if ATTACK_IS_TWIN
  call.ctx->free(call.ctx, pool);
#endif
  return status;
}
