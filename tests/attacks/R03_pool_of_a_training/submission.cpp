// attack: 400 MiB that are touched when the library is loaded serve a training; its twin takes them from
// ctx->alloc
// challenge: ternary_training
// cases: train_1
// expect: honest | MLE | WA
// dimension: resources
// twin: self
// fast: none
// deadline: 600
// kind: memory
#define tt_train honest_tt_train
#include "honest.inl"
#undef tt_train
#include <cstdlib>

#include "witness.h"

constexpr std::size_t kPool = std::size_t{400} << 20;

#if !ATTACK_IS_TWIN
static char* const pool = [] {
  auto* p = static_cast<char*>(std::malloc(kPool));
  std::memset(p, 1, kPool);
  return p;
}();
#endif

extern "C" int tt_train(assay_ctx* ctx, const tt_config* c, const std::uint16_t* docs,
                        std::int64_t n_docs, const tt_budget* budget, void* blob) {
#if ATTACK_IS_TWIN
  auto* const pool = static_cast<char*>(ctx->alloc(ctx, kPool, 64, 0));
  if (pool == nullptr) return ASSAY_ENOMEM;
#endif
  for (std::size_t i = 0; i < kPool; i += 512) ++pool[i];
  witness();
  const int status = honest_tt_train(ctx, c, docs, n_docs, budget, blob);
#if ATTACK_IS_TWIN
  ctx->free(ctx, pool);
#endif
  return status;
}
