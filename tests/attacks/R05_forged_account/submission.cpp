// attack: takes scratch from ctx->alloc and then sets the peak that the worker keeps of it to zero
// challenge: fused_softmax_topk
// cases: scratch
// expect: honest | MLE | WA | RE
// dimension: resources
// twin: self
// kind: memory
#include "allocator.h"
#include "target.h"

constexpr std::size_t kPool = std::size_t{64} << 20;

int attack(Call& call) {
  auto* pool = static_cast<char*>(call.ctx->alloc(call.ctx, kPool, 64, 0));
  if (pool == nullptr) return ASSAY_ENOMEM;
  for (std::size_t i = 0; i < kPool; i += 512) pool[i] = 1;
  const int status = call.honest();
  call.ctx->free(call.ctx, pool);
#if !ATTACK_IS_TWIN
  const Allocator allocator = find_allocator(call.ctx);
  if (allocator.base != nullptr && allocator.peak() >= kPool) {
    allocator.peak() = 0;
    witness();
  }
#endif
  return status;
}
