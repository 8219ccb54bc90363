// attack: 64 MiB that are touched when the library is loaded serve as scratch of an attention; its twin
// takes them from ctx->alloc
// challenge: kv_cache
// cases: attend_scratch
// expect: honest | MLE | WA
// dimension: resources
// twin: self
// fast: none
// kind: memory
#include <cstdlib>

#include "target.h"

constexpr std::size_t kPool = std::size_t{64} << 20;

#if !ATTACK_IS_TWIN
static char* const pool = [] {
  auto* p = static_cast<char*>(std::malloc(kPool));
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
