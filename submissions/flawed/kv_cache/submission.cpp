// Sample entrant of assay, not a model's answer: plausible code with bugs that real answers had.
//   1. Arrays grow by concatenation: every append copies the whole history.
//   2. The mask of a chunk is only right when nothing stands before the chunk: rows on top of a
//   history
//      see the whole chunk.
//   3. A fork shares the arrays, and a truncated side writes its next tokens over the other's.
//   4. The budget is checked entry by entry while rows are stored.
//   5. Scores go into the exponential as they are.
//   6. Nobody asks whether there was memory.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "abi.h"

namespace {

// Keys and values of some tokens, shared by forks.
struct Array {
  int holders = 1;
  std::int64_t capacity = 0;
  float *k = nullptr, *v = nullptr;
};

struct Layer {
  std::int64_t length = 0;
  Array* array = nullptr;
};

struct Sequence {
  bool alive = false;
  std::vector<Layer> layers;
};

}  // namespace

struct kvc {
  assay_ctx* ctx = nullptr;
  kvc_config c{};
  std::vector<Sequence> sequences;
  std::int64_t reserved = 0;

  std::size_t k_row() const {
    return static_cast<std::size_t>(c.n_kv) * static_cast<std::size_t>(c.D);
  }
  std::int64_t bytes(std::int64_t tokens) const { return tokens * 2 * c.n_kv * c.D * 4; }
  bool known(std::int32_t slot) const {
    return slot >= 0 && slot < c.max_seqs && sequences[static_cast<std::size_t>(slot)].alive;
  }
  Layer& layer(std::int32_t slot, std::int32_t l) {
    return sequences[static_cast<std::size_t>(slot)].layers[static_cast<std::size_t>(l)];
  }

  void release(Array* array) {
    if (array == nullptr || --array->holders > 0) return;
    ctx->free(ctx, array->k);
    ctx->free(ctx, array->v);
    reserved -= bytes(array->capacity);
    delete array;
  }

  void concatenate(Layer& layer, std::int64_t n, const float* k, const float* v) {
    const std::int64_t length = layer.length + n;
    if (layer.array == nullptr || layer.array->capacity < length) {
      auto* larger = new Array;
      larger->capacity = length;
      larger->k =
          static_cast<float*>(ctx->alloc(ctx, static_cast<std::size_t>(bytes(length) / 2), 64, 0));
      larger->v =
          static_cast<float*>(ctx->alloc(ctx, static_cast<std::size_t>(bytes(length) / 2), 64, 0));
      reserved += bytes(length);
      if (layer.length > 0) {
        std::memcpy(larger->k, layer.array->k, static_cast<std::size_t>(bytes(layer.length) / 2));
        std::memcpy(larger->v, layer.array->v, static_cast<std::size_t>(bytes(layer.length) / 2));
      }
      release(layer.array);
      layer.array = larger;
    }
    std::memcpy(layer.array->k + static_cast<std::size_t>(layer.length) * k_row(), k,
                static_cast<std::size_t>(bytes(n) / 2));
    std::memcpy(layer.array->v + static_cast<std::size_t>(layer.length) * k_row(), v,
                static_cast<std::size_t>(bytes(n) / 2));
    layer.length = length;
  }

  std::int64_t tokens(std::int32_t l) const {
    std::int64_t sum = 0;
    for (const Sequence& s : sequences)
      sum += s.alive ? s.layers[static_cast<std::size_t>(l)].length : 0;
    return sum;
  }
};

namespace {

int check_batch(const kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                const std::int64_t* cu) {
  if (cache == nullptr || layer < 0 || layer >= cache->c.n_layers || n < 0) return ASSAY_EINVAL;
  if (n > 0 && (slots == nullptr || cu == nullptr)) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < n; ++b) {
    if (!cache->known(slots[b])) return ASSAY_ESTATE;
    if (cu[b + 1] < cu[b] || std::find(slots, slots + b, slots[b]) != slots + b)
      return ASSAY_EINVAL;
  }
  return ASSAY_OK;
}

}  // namespace

extern "C" {

int kvc_create(assay_ctx* ctx, const kvc_config* c, kvc** out) {
  if (c == nullptr || out == nullptr || c->size != sizeof(kvc_config)) return ASSAY_EINVAL;
  if (c->n_layers < 1 || c->n_q < 1 || c->n_kv < 1 || c->n_q % c->n_kv != 0 || c->D < 1)
    return ASSAY_EINVAL;
  if (c->max_seqs < 0 || c->max_tokens < 0 || c->max_len < 0) return ASSAY_EINVAL;
  if (c->dtype != ASSAY_F32 || c->window != -1 || c->quant != 0 || c->sinks != 0)
    return ASSAY_ENOTSUP;
  if (c->Dv != 0 && c->Dv != c->D) return ASSAY_ENOTSUP;
  auto* cache = new kvc;
  cache->ctx = ctx;
  cache->c = *c;
  cache->sequences.resize(static_cast<std::size_t>(c->max_seqs));
  *out = cache;
  return ASSAY_OK;
}

int kvc_seq_free(kvc* cache, std::int32_t slot) {
  if (!cache->known(slot)) return ASSAY_ESTATE;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l) cache->release(cache->layer(slot, l).array);
  cache->sequences[static_cast<std::size_t>(slot)] = {};
  return ASSAY_OK;
}

void kvc_destroy(kvc* cache) {
  for (std::int32_t s = 0; cache != nullptr && s < cache->c.max_seqs; ++s) kvc_seq_free(cache, s);
  delete cache;
}

int kvc_seq_new(kvc* cache, std::int32_t* slot) {
  if (slot == nullptr) return ASSAY_EINVAL;
  for (std::int32_t s = 0; s < cache->c.max_seqs; ++s) {
    if (cache->known(s)) continue;
    cache->sequences[static_cast<std::size_t>(s)] = {
        true, std::vector<Layer>(static_cast<std::size_t>(cache->c.n_layers))};
    *slot = s;
    return ASSAY_OK;
  }
  return ASSAY_ECAP;
}

int kvc_truncate(kvc* cache, std::int32_t slot, std::int64_t new_len) {
  if (!cache->known(slot)) return ASSAY_ESTATE;
  std::int64_t longest = 0;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l)
    longest = std::max(longest, cache->layer(slot, l).length);
  if (new_len < 0 || new_len > longest) return ASSAY_EINVAL;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l) {
    cache->layer(slot, l).length = std::min(cache->layer(slot, l).length, new_len);
  }
  return ASSAY_OK;
}

int kvc_fork(kvc* cache, std::int32_t src, std::int32_t* dst) {
  if (!cache->known(src)) return ASSAY_ESTATE;
  const int status = kvc_seq_new(cache, dst);
  if (status != ASSAY_OK) return status;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l) {
    cache->layer(*dst, l) = cache->layer(src, l);
    if (cache->layer(src, l).array != nullptr) ++cache->layer(src, l).array->holders;
  }
  return ASSAY_OK;
}

int kvc_append(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
               const std::int64_t* cu, const void* k, const void* v) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  if (k == nullptr || v == nullptr) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < n; ++b) {
    const std::int64_t rows = cu[b + 1] - cu[b];
    if (rows == 0) continue;
    Layer& to = cache->layer(slots[b], layer);
    if (to.length + rows > cache->c.max_len || cache->tokens(layer) + rows > cache->c.max_tokens)
      return ASSAY_ECAP;
    const std::size_t at = static_cast<std::size_t>(cu[b]) * cache->k_row();
    cache->concatenate(to, rows, static_cast<const float*>(k) + at,
                       static_cast<const float*>(v) + at);
  }
  return ASSAY_OK;
}

int kvc_attend(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
               const std::int64_t* cu, const void* q, float scale, void* o, float* lse) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  if (q == nullptr || o == nullptr) return ASSAY_EINVAL;
  const std::int64_t D = cache->c.D, n_q = cache->c.n_q, group = n_q / cache->c.n_kv;
  for (std::int32_t b = 0; b < n; ++b) {
    const Layer& history = cache->layer(slots[b], layer);
    const std::int64_t rows = cu[b + 1] - cu[b];
    for (std::int64_t i = 0; i < rows * n_q; ++i) {
      const std::int64_t at = cu[b] * n_q + i, head = i % n_q / group;
      const std::int64_t visible = history.length == rows ? i / n_q + 1 : history.length;
      const float* query = static_cast<const float*>(q) + at * D;
      float* out = static_cast<float*>(o) + at * D;
      float sum = 0;
      std::fill(out, out + D, 0.0f);
      for (std::int64_t j = 0; j < visible; ++j) {
        const float* key =
            history.array->k + static_cast<std::size_t>(j) * cache->k_row() + head * D;
        const float* value =
            history.array->v + static_cast<std::size_t>(j) * cache->k_row() + head * D;
        float score = 0;
        for (std::int64_t d = 0; d < D; ++d) score += query[d] * key[d];
        const float weight = std::exp(score * scale);
        sum += weight;
        for (std::int64_t d = 0; d < D; ++d) out[d] += weight * value[d];
      }
      for (std::int64_t d = 0; d < D && sum > 0; ++d) out[d] /= sum;
      if (lse != nullptr) lse[at] = std::log(sum);
    }
  }
  return ASSAY_OK;
}

std::int64_t kvc_len(kvc* cache, std::int32_t layer, std::int32_t slot) {
  if (layer < 0 || layer >= cache->c.n_layers || !cache->known(slot)) return -1;
  return cache->layer(slot, layer).length;
}

int kvc_bytes(kvc* cache, std::int64_t* live, std::int64_t* reserved) {
  std::int64_t tokens = 0;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l) tokens += cache->tokens(l);
  *live = cache->bytes(tokens);
  *reserved = cache->reserved;
  return ASSAY_OK;
}

int kvc_read(kvc* cache, std::int32_t layer, std::int32_t slot, std::int64_t t0, std::int64_t t1,
             void* k, void* v) {
  if (layer < 0 || layer >= cache->c.n_layers) return ASSAY_EINVAL;
  if (!cache->known(slot)) return ASSAY_ESTATE;
  const Layer& from = cache->layer(slot, layer);
  if (t0 < 0 || t1 < t0 || t1 > from.length) return ASSAY_EINVAL;
  if (t1 == t0) return ASSAY_OK;
  if (k == nullptr || v == nullptr) return ASSAY_EINVAL;
  const std::size_t at = static_cast<std::size_t>(t0) * cache->k_row();
  std::memcpy(k, from.array->k + at, static_cast<std::size_t>(cache->bytes(t1 - t0) / 2));
  std::memcpy(v, from.array->v + at, static_cast<std::size_t>(cache->bytes(t1 - t0) / 2));
  return ASSAY_OK;
}

}  // extern "C"
