// attack: a cache holds 48 MiB from the context behind the one that counts, which ctx->priv leads to; its twin
// takes them from the context that it was given
// challenge: kv_cache
// cases: resource
// expect: honest | MLE | WA
// dimension: resources
// twin: self
// variants: held taken-and-freed
// fast: none
// kind: memory
#define kvc_create honest_kvc_create
#define kvc_bytes honest_kvc_bytes
#define kvc_destroy honest_kvc_destroy
#include "honest.inl"
#undef kvc_create
#undef kvc_bytes
#undef kvc_destroy
#include <cstring>
#include <map>

#include "witness.h"

constexpr std::size_t kPool = std::size_t{48} << 20;

struct Pool {
  assay_ctx* source;
  void* data;
};
static std::map<kvc*, Pool> pools;

static void* touched(assay_ctx* ctx) {
  void* p = ctx->alloc(ctx, kPool, 4096, 0);
  if (p != nullptr) std::memset(p, 1, kPool);
  return p;
}

// The counting context keeps a pointer to the one that it counts for.
[[maybe_unused]] static assay_ctx* behind(assay_ctx* ctx) {
  auto* const words =
      reinterpret_cast<assay_ctx**>(static_cast<char*>(ctx->priv) + sizeof(assay_ctx));
  for (int i = 0; i < 4; ++i) {
    assay_ctx* const candidate = words[i];
    if (candidate == nullptr || reinterpret_cast<std::uintptr_t>(candidate) % 8 != 0) continue;
    if (candidate->abi != ctx->abi || candidate->nthreads != ctx->nthreads) continue;
    witness();
    return candidate;
  }
  return ctx;
}

extern "C" int kvc_create(assay_ctx* ctx, const kvc_config* config, kvc** out) {
  const int status = honest_kvc_create(ctx, config, out);
  if (status != ASSAY_OK) return status;
#if ATTACK_IS_TWIN
  assay_ctx* const source = ctx;
#else
  assay_ctx* const source = behind(ctx);
#endif
  Pool pool{source, touched(source)};
#if ATTACK_VARIANT == 1
  if (pool.data != nullptr) source->free(source, pool.data);
  pool.data = nullptr;
#endif
  pools[*out] = pool;
  return status;
}

extern "C" int kvc_bytes(kvc* cache, std::int64_t* live, std::int64_t* reserved) {
  const int status = honest_kvc_bytes(cache, live, reserved);
#if ATTACK_IS_TWIN
  if (status == ASSAY_OK && pools[cache].data != nullptr) *reserved += kPool;
#endif
  return status;
}

extern "C" void kvc_destroy(kvc* cache) {
  const auto pool = pools.find(cache);
  if (pool != pools.end()) {
    if (pool->second.data != nullptr)
      pool->second.source->free(pool->second.source, pool->second.data);
    pools.erase(pool);
  }
  honest_kvc_destroy(cache);
}
