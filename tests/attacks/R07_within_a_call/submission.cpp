// attack: 384 KiB that are the process's own and given back before the call ends: about as much as a kernel's
// figures are off by; by guards in their place, or by a library whose code they stood for
// challenge: fused_softmax_topk dflash_verify
// cases: resource
// expect: honest | WA | MLE
// dimension: resources
// twin: self
// variants: mapped heap advised guards library
// fast: fused_softmax_topk
// kind: memory
#include <link.h>
#include <sys/mman.h>

#include "target.h"

constexpr std::size_t kPool = std::size_t{384} << 10;

#if ATTACK_VARIANT == 4 && !ATTACK_IS_TWIN
// Whole pages of the C++ library's code.
static int find_code(dl_phdr_info* object, std::size_t, void* found) {
  if (std::strstr(object->dlpi_name, "libstdc++") == nullptr) return 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const bool is_code = segment.p_type == PT_LOAD && (segment.p_flags & PF_X) != 0;
    if (!is_code || segment.p_memsz < kPool + 4096) continue;
    *static_cast<std::uintptr_t*>(found) =
        (object->dlpi_addr + segment.p_vaddr + 4095) & ~std::uintptr_t{4095};
  }
  return 1;
}
#endif

static char* take(Call& call) {
#if ATTACK_IS_TWIN
  return static_cast<char*>(call.ctx->alloc(call.ctx, kPool, 4096, 0));
#elif ATTACK_VARIANT == 1
  (void)call;
  void* p = sbrk(static_cast<std::intptr_t>(kPool));
  return p == reinterpret_cast<void*>(-1) ? nullptr : static_cast<char*>(p);
#elif ATTACK_VARIANT == 4
  (void)call;
  std::uintptr_t code = 0;
  dl_iterate_phdr(find_code, &code);
  auto* const p = reinterpret_cast<char*>(code);
  return p == nullptr || mprotect(p, kPool, PROT_READ | PROT_WRITE) != 0 ? nullptr : p;
#else
  (void)call;
  static char* kept = nullptr;
  if (kept != nullptr) return kept;
  void* p = mmap(nullptr, kPool, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
#if ATTACK_VARIANT >= 2
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
#elif ATTACK_VARIANT == 2
  (void)call;
  madvise(pool, kPool, MADV_DONTNEED);
#elif ATTACK_VARIANT == 3
  constexpr int kInstallGuards = 102, kRemoveGuards = 103;
  (void)call;
  madvise(pool, kPool, kInstallGuards);
  madvise(pool, kPool, kRemoveGuards);
#else
  (void)call;
  madvise(pool, kPool, MADV_DONTNEED);  // the file's pages again
  mprotect(pool, kPool, PROT_READ | PROT_EXEC);
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
