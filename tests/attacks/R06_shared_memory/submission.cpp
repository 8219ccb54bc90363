// attack: 64 MiB of scratch in shared memory, of which a window of 256 KiB is mapped or resident at any one
// moment; what is dropped there keeps its contents, and accounts take it for a file's
// challenge: fused_softmax_topk flash_attention_fwd
// cases: resource
// expect: honest | WA | MLE | SV
// dimension: resources
// twin: self
// variants: anonymous remapped
// fast: none
// kind: memory
#include <sys/mman.h>

#include "pool.h"
#include "target.h"

constexpr std::size_t kPool = std::size_t{64} << 20, kWindow = std::size_t{256} << 10;

int attack(Call& call) {
#if ATTACK_IS_TWIN
  auto* const pool = static_cast<char*>(call.ctx->alloc(call.ctx, kPool, 4096, 0));
  if (pool == nullptr) return ASSAY_ENOMEM;
  const bool kept = use_pool(pool, kPool, kWindow, [](char*) {});
  const int status = call.honest();
  call.ctx->free(call.ctx, pool);
#else
  static char* pool = nullptr;
  if (pool == nullptr) {
    void* p = mmap(nullptr, kPool, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    witness();  // refused or not
    if (p == MAP_FAILED) return ASSAY_ENOMEM;
    pool = static_cast<char*>(p);
  }
  const bool kept = use_pool(pool, kPool, kWindow, [](char* window) {
#if ATTACK_VARIANT == 0
    madvise(window, kWindow, MADV_DONTNEED);
#else
    // A second mapping of the same pages takes the place of the first.
    void* again = mremap(window, 0, kWindow, MREMAP_MAYMOVE);
    if (again != MAP_FAILED) mremap(again, kWindow, kWindow, MREMAP_MAYMOVE | MREMAP_FIXED, window);
#endif
  });
  const int status = call.honest();
#endif
  return kept ? status : ASSAY_EINTERNAL;
}
