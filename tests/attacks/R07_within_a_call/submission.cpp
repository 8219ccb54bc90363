// attack: 384 KiB that are the process's own and given back before the call ends: about as much as a kernel's
// figures are off by
// challenge: fused_softmax_topk dflash_verify
// cases: resource
// expect: honest | WA | MLE
// dimension: resources
// twin: self
// variants: mapped heap advised
// fast: fused_softmax_topk
// kind: memory
#include <sys/mman.h>

#include "target.h"

constexpr std::size_t kPool = std::size_t{384} << 10;

static char* take(Call& call) {
#if ATTACK_IS_TWIN
  return static_cast<char*>(call.ctx->alloc(call.ctx, kPool, 4096, 0));
#elif ATTACK_VARIANT == 1
  (void)call;
  void* p = sbrk(static_cast<std::intptr_t>(kPool));
  return p == reinterpret_cast<void*>(-1) ? nullptr : static_cast<char*>(p);
#else
  (void)call;
  static char* kept = nullptr;
  if (kept != nullptr) return kept;
  void* p = mmap(nullptr, kPool, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
#if ATTACK_VARIANT == 2
  kept = static_cast<char*>(p);
#endif
  return static_cast<char*>(p);
#endif
}

static void give_back(Call& call, char* pool) {
#if ATTACK_IS_TWIN
  call.ctx->free(call.ctx, pool);
#elif ATTACK_VARIANT == 0
  (void)call;
  munmap(pool, kPool);
#elif ATTACK_VARIANT == 1
  (void)call, (void)pool;
  sbrk(-static_cast<std::intptr_t>(kPool));
#else
  (void)call;
  madvise(pool, kPool, MADV_DONTNEED);
#endif
}

int attack(Call& call) {
  const int status = call.honest();
  char* const pool = take(call);
  if (pool == nullptr) return ASSAY_ENOMEM;
  for (std::size_t i = 0; i < kPool; i += 64) pool[i] = static_cast<char>(i);
  give_back(call, pool);
  witness();
  return status;
}
