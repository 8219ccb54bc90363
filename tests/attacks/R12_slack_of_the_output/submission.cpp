// attack: 12 MiB of scratch in the shared memory behind the outputs, of which 16 KiB are resident at any one
// moment; what is dropped there keeps its contents
// challenge: beam_search
// cases: one-resource
// expect: honest | WA | MLE
// dimension: resources
// twin: self
// fast: beam_search
// kind: memory
#include <sys/mman.h>

#include <algorithm>

#include "pool.h"
#include "target.h"

constexpr std::size_t kPool = std::size_t{12} << 20, kWindow = std::size_t{16} << 10;

// Requests to the model are far smaller.
constexpr std::size_t kRequests = std::size_t{3} << 20;

[[maybe_unused]] static char* behind_the_outputs(const Call& call) {
  std::uintptr_t end = 0;
  for (const Output& o : call.outputs)
    end = std::max(end, reinterpret_cast<std::uintptr_t>(o.data) + o.bytes);
  return reinterpret_cast<char*>((end + kRequests) & ~std::uintptr_t{4095});
}

int attack(Call& call) {
#if ATTACK_IS_TWIN
  auto* const pool = static_cast<char*>(call.ctx->alloc(call.ctx, kPool, 4096, 0));
  if (pool == nullptr) return ASSAY_ENOMEM;
#else
  char* const pool = behind_the_outputs(call);
#endif
  const bool kept = use_pool(pool, kPool, kWindow, [](char* window) {
#if ATTACK_IS_TWIN
    (void)window;
#else
    madvise(window, kWindow, MADV_DONTNEED);
#endif
  });
  witness();
  const int status = call.honest();
#if ATTACK_IS_TWIN
  call.ctx->free(call.ctx, pool);
#endif
  return kept ? status : ASSAY_EINTERNAL;
}
