// The plain implementation: every sequence has a list of pages of 32 tokens per layer, a page knows
// how many sequences hold it and is copied before one of several writes to it. Pages of a quantised
// cache are packed when they are full; until then, and when they are written again after a
// truncation, they hold their elements as given. Attention goes row by row, head by head, in two
// passes.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "abi.h"
#include "common/arguments.h"
#include "naive/cache.h"
#include "naive/packing.h"
#include "naive/rules.h"

struct kvc : Cache {};

namespace {

int check_trees(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                const std::int64_t* cu, const std::int32_t* parent) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  if (parent == nullptr) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < n; ++b) {
    const std::int64_t nodes = cu[b + 1] - cu[b];
    if (nodes > kvc_len(cache, layer, slots[b])) return ASSAY_EINVAL;
    for (std::int64_t i = 0; i < nodes; ++i) {
      if (parent[cu[b] + i] < -1 || parent[cu[b] + i] >= i) return ASSAY_EINVAL;
    }
  }
  return ASSAY_OK;
}

int check_shared(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                 const std::int64_t* cu, std::int64_t shared) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK) return status;
  if (shared < 0) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < n; ++b) {
    if (shared > kvc_len(cache, layer, slots[b])) return ASSAY_EINVAL;
  }
  return ASSAY_OK;
}

// parent: NULL where the rows are a chain.
template <class R>
int attend_batch(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                 const std::int64_t* cu, const void* q, float scale, void* o, float* lse,
                 const std::int32_t* parent = nullptr) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  if (q == nullptr || o == nullptr) return ASSAY_EINVAL;
  const kvc_config& c = cache->c;
  std::vector<float> query(static_cast<std::size_t>(c.D));
  // Before anything is written: room for the weights of the longest sequence.
  std::int64_t longest = 0;
  for (std::int32_t b = 0; b < n; ++b) longest = std::max(longest, kvc_len(cache, layer, slots[b]));
  const auto bytes = static_cast<std::size_t>(longest + 1) * sizeof(float);
  auto* p = static_cast<float*>(cache->ctx->alloc(cache->ctx, bytes, 64, 0));
  if (p == nullptr) return ASSAY_ENOMEM;
  for (std::int32_t b = 0; b < n; ++b) {
    Layer& history = cache->sequence(slots[b]).layers[static_cast<std::size_t>(layer)];
    const std::int64_t rows = cu[b + 1] - cu[b], length = history.length;
    for (std::int64_t i = 0; i < rows * c.n_q; ++i) {
      const std::int64_t at = cu[b] * c.n_q + i;
      for (std::int64_t d = 0; d < c.D; ++d) {
        query[static_cast<std::size_t>(d)] =
            c.dtype == ASSAY_BF16 ? widen(static_cast<const std::uint16_t*>(q)[at * c.D + d])
                                  : static_cast<const float*>(q)[at * c.D + d];
      }
      const std::int64_t row = i / c.n_q, head = R::key_head(c, i % c.n_q);
      float* row_lse = lse == nullptr ? nullptr : lse + at;
      if (parent == nullptr) {
        const std::int64_t position = R::position(length, rows, row);
        cache->attend<R>(
            history, position + 1, [&](std::int64_t j) { return R::visible(c, j, position); }, head,
            query.data(), scale, p, o, at * c.Dv, row_lse);
      } else {
        cache->attend<R>(history, length, in_tree<R>(c, length - rows, parent + cu[b], row), head,
                         query.data(), scale, p, o, at * c.Dv, row_lse);
      }
    }
  }
  cache->ctx->free(cache->ctx, p);
  return ASSAY_OK;
}

}  // namespace

extern "C" {

int kvc_create(assay_ctx* ctx, const kvc_config* config, kvc** out) {
  if (ctx == nullptr || config == nullptr || out == nullptr || !valid(*config)) return ASSAY_EINVAL;
  try {
    auto cache =
        std::make_unique<kvc>(kvc{{ctx, *config, config->dtype == ASSAY_BF16 ? 2 : 4, {}}});
    if (cache->c.Dv == 0) cache->c.Dv = cache->c.D;
    cache->sequences.resize(static_cast<std::size_t>(config->max_seqs));
    *out = cache.release();
  } catch (const std::bad_alloc&) {
    return ASSAY_ENOMEM;
  }
  return ASSAY_OK;
}

void kvc_destroy(kvc* cache) {
  if (cache == nullptr) return;
  for (Sequence& s : cache->sequences) cache->clear(s);
  delete cache;
}

int kvc_seq_new(kvc* cache, std::int32_t* slot) {
  if (cache == nullptr || slot == nullptr) return ASSAY_EINVAL;
  const int status = cache->free_slot(slot);
  if (status != ASSAY_OK) return status;
  cache->sequence(*slot).alive = true;
  cache->sequence(*slot).layers.resize(static_cast<std::size_t>(cache->c.n_layers));
  return ASSAY_OK;
}

int kvc_seq_free(kvc* cache, std::int32_t slot) {
  if (cache == nullptr) return ASSAY_EINVAL;
  if (!cache->known(slot)) return ASSAY_ESTATE;
  cache->clear(cache->sequence(slot));
  return ASSAY_OK;
}

int kvc_truncate(kvc* cache, std::int32_t slot, std::int64_t new_len) {
  if (cache == nullptr || new_len < 0) return ASSAY_EINVAL;
  if (!cache->known(slot)) return ASSAY_ESTATE;
  std::int64_t longest = 0;
  for (const Layer& layer : cache->sequence(slot).layers) longest = std::max(longest, layer.length);
  if (new_len > longest) return ASSAY_ESTATE;
  for (Layer& layer : cache->sequence(slot).layers) cache->truncate(layer, new_len);
  return ASSAY_OK;
}

int kvc_fork(kvc* cache, std::int32_t src, std::int32_t* dst) {
  if (cache == nullptr || dst == nullptr) return ASSAY_EINVAL;
  if (!cache->known(src)) return ASSAY_ESTATE;
  const std::vector<Layer>& layers = cache->sequence(src).layers;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (cache->tokens(l) + layers[l].length > cache->c.max_tokens) return ASSAY_ECAP;
  }
  const int status = cache->free_slot(dst);
  if (status != ASSAY_OK) return status;
  for (const Layer& layer : layers) {
    for (Page* page : layer.pages) page != nullptr ? void(++page->holders) : void();
  }
  cache->sequence(*dst) = cache->sequence(src);
  return ASSAY_OK;
}

int kvc_append(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
               const std::int64_t* cu, const void* k, const void* v) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0) return status;
  if (cu[n] > 0 && (k == nullptr || v == nullptr)) return ASSAY_EINVAL;
  const kvc_config& c = cache->c;
  const auto l = static_cast<std::size_t>(layer);
  if (cache->tokens(l) + cu[n] > c.max_tokens) return ASSAY_ECAP;
  for (std::int32_t b = 0; b < n; ++b) {
    if (cache->sequence(slots[b]).layers[l].length + cu[b + 1] - cu[b] > c.max_len)
      return ASSAY_ECAP;
  }
  std::vector<Cache::Growth> growths;
  try {
    for (std::int32_t b = 0; b < n; ++b) {
      growths.push_back(cache->grow(cache->sequence(slots[b]).layers[l]));
      cache->append(growths.back(), cu[b + 1] - cu[b],
                    static_cast<const unsigned char*>(k) + cu[b] * c.n_kv * c.D * cache->element,
                    static_cast<const unsigned char*>(v) + cu[b] * c.n_kv * c.Dv * cache->element);
    }
    for (const Cache::Growth& g : growths) g.layer.pages.reserve(g.kept + g.pages.size());
  } catch (const std::bad_alloc&) {
    for (const Cache::Growth& g : growths) cache->abandon(g);
    return ASSAY_ENOMEM;
  }
  for (const Cache::Growth& g : growths) cache->commit(g);
  return ASSAY_OK;
}

int kvc_attend(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
               const std::int64_t* cu, const void* q, float scale, void* o, float* lse) {
  return attend_batch<Rules>(cache, layer, n, slots, cu, q, scale, o, lse);
}

int kvc_attend_tree(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                    const std::int64_t* cu, const std::int32_t* parent, const void* q, float scale,
                    void* o, float* lse) {
  const int status = check_trees(cache, layer, n, slots, cu, parent);
  if (status != ASSAY_OK) return status;
  return attend_batch<Rules>(cache, layer, n, slots, cu, q, scale, o, lse, parent);
}

int kvc_attend_shared(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                      const std::int64_t* cu, std::int64_t shared, const void* q, float scale,
                      void* o, float* lse) {
  const int status = check_shared(cache, layer, n, slots, cu, shared);
  if (status != ASSAY_OK) return status;
  return attend_batch<Rules>(cache, layer, n, slots, cu, q, scale, o, lse);
}

// A page that no sequence holds goes back to the context at once, so nothing is ever left over.
int kvc_defragment(kvc* cache) { return cache == nullptr ? ASSAY_EINVAL : ASSAY_OK; }

std::int64_t kvc_len(kvc* cache, std::int32_t layer, std::int32_t slot) {
  if (cache == nullptr || layer < 0 || layer >= cache->c.n_layers || !cache->known(slot)) return -1;
  return cache->sequence(slot).layers[static_cast<std::size_t>(layer)].length;
}

int kvc_bytes(kvc* cache, std::int64_t* live, std::int64_t* reserved) {
  if (cache == nullptr || live == nullptr || reserved == nullptr) return ASSAY_EINVAL;
  *live = *reserved = cache->live;
  return ASSAY_OK;
}

int kvc_read(kvc* cache, std::int32_t layer, std::int32_t slot, std::int64_t t0, std::int64_t t1,
             void* k, void* v) {
  if (cache == nullptr || layer < 0 || layer >= cache->c.n_layers) return ASSAY_EINVAL;
  if (!cache->known(slot)) return ASSAY_ESTATE;
  Layer& history = cache->sequence(slot).layers[static_cast<std::size_t>(layer)];
  if (t0 < 0 || t1 < t0 || t1 > history.length) return ASSAY_EINVAL;
  if (t1 > t0 && (k == nullptr || v == nullptr)) return ASSAY_EINVAL;
  const kvc_config& c = cache->c;
  std::vector<float> row(static_cast<std::size_t>(std::max(c.D, c.Dv)));
  for (std::int64_t t = t0; t < t1; ++t) {
    Page* page = history.pages[static_cast<std::size_t>(t / kPage)];
    for (std::int64_t head = 0; head < c.n_kv; ++head) {
      const std::int64_t at = (t - t0) * c.n_kv + head;
      cache->load_key(page, head, t % kPage, row.data());
      for (std::int64_t d = 0; d < c.D; ++d)
        cache->put(k, at * c.D + d, row[static_cast<std::size_t>(d)]);
      cache->load_value(page, head, t % kPage, row.data());
      for (std::int64_t d = 0; d < c.Dv; ++d)
        cache->put(v, at * c.Dv + d, row[static_cast<std::size_t>(d)]);
    }
  }
  return ASSAY_OK;
}

}  // extern "C"
