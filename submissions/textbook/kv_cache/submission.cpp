// Sample entrant of assay, not a model's answer: what a textbook would print. Each layer of a
// sequence has one array of keys and one of values, which double when they are full; a fork copies
// them. Attention is the online softmax, key by key, with the query heads of a batch shared among
// threads. fp32, and of the optional parts only values of another width than the keys.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "abi.h"

namespace {

// One layer of one sequence: keys [length, n_kv, D] and values [length, n_kv, Dv].
struct Layer {
  std::int64_t length = 0, capacity = 0;
  float *k = nullptr, *v = nullptr;
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

  std::int64_t k_row() const { return std::int64_t{c.n_kv} * c.D; }
  std::int64_t v_row() const { return std::int64_t{c.n_kv} * c.Dv; }

  float* take(std::int64_t floats) {
    return static_cast<float*>(
        ctx->alloc(ctx, static_cast<std::size_t>(floats) * sizeof(float), 64, 0));
  }

  bool known(std::int32_t slot) const {
    return slot >= 0 && slot < c.max_seqs && sequences[static_cast<std::size_t>(slot)].alive;
  }
  Layer& layer(std::int32_t slot, std::int32_t l) {
    return sequences[static_cast<std::size_t>(slot)].layers[static_cast<std::size_t>(l)];
  }

  void release(Layer& layer) {
    if (layer.capacity == 0) return;
    ctx->free(ctx, layer.k);
    ctx->free(ctx, layer.v);
    reserved -= layer.capacity * (k_row() + v_row()) * 4;
    layer = {};
  }

  // Room for `length` tokens; false when there is no memory.
  bool grow(Layer& layer, std::int64_t length) {
    if (length <= layer.capacity) return true;
    Layer larger;
    larger.length = layer.length;
    larger.capacity = std::max<std::int64_t>({length, 2 * layer.capacity, 16});
    larger.k = take(larger.capacity * k_row());
    larger.v = take(larger.capacity * v_row());
    if (larger.k == nullptr || larger.v == nullptr) {
      ctx->free(ctx, larger.k);
      ctx->free(ctx, larger.v);
      return false;
    }
    reserved += larger.capacity * (k_row() + v_row()) * 4;
    if (layer.length > 0) {
      std::memcpy(larger.k, layer.k, static_cast<std::size_t>(layer.length * k_row()) * 4);
      std::memcpy(larger.v, layer.v, static_cast<std::size_t>(layer.length * v_row()) * 4);
    }
    release(layer);
    layer = larger;
    return true;
  }

  std::int64_t tokens(std::int32_t l) const {
    std::int64_t sum = 0;
    for (const Sequence& s : sequences)
      sum += s.alive ? s.layers[static_cast<std::size_t>(l)].length : 0;
    return sum;
  }

  int open(std::int32_t* slot) {
    for (std::int32_t s = 0; s < c.max_seqs; ++s) {
      Sequence& sequence = sequences[static_cast<std::size_t>(s)];
      if (sequence.alive) continue;
      sequence.alive = true;
      sequence.layers.assign(static_cast<std::size_t>(c.n_layers), {});
      *slot = s;
      return ASSAY_OK;
    }
    return ASSAY_ECAP;
  }

  void close(std::int32_t slot) {
    Sequence& sequence = sequences[static_cast<std::size_t>(slot)];
    for (Layer& l : sequence.layers) release(l);
    sequence = {};
  }
};

namespace {

int check_batch(const kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                const std::int64_t* cu) {
  if (cache == nullptr || layer < 0 || layer >= cache->c.n_layers || n < 0) return ASSAY_EINVAL;
  if (n > 0 && (slots == nullptr || cu == nullptr || cu[0] != 0)) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < n; ++b) {
    if (!cache->known(slots[b])) return ASSAY_ESTATE;
    if (cu[b + 1] < cu[b] || std::find(slots, slots + b, slots[b]) != slots + b)
      return ASSAY_EINVAL;
  }
  return ASSAY_OK;
}

float dot(const float* a, const float* b, std::int64_t n) {
  float lanes[16] = {};
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (std::int64_t j = 0; j < 16; ++j) lanes[j] += a[i + j] * b[i + j];
  }
  float sum = 0;
  for (const float lane : lanes) sum += lane;
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// One query head on the first `visible` tokens of a layer.
void attend_head(const kvc& cache, const Layer& layer, std::int64_t visible, std::int64_t kv,
                 const float* q, float scale, float* o, float* lse) {
  const std::int64_t D = cache.c.D, Dv = cache.c.Dv;
  float max = -std::numeric_limits<float>::infinity();
  double sum = 0;
  std::fill(o, o + Dv, 0.0f);
  for (std::int64_t j = 0; j < visible; ++j) {
    const float score = scale * dot(q, layer.k + j * cache.k_row() + kv * D, D);
    if (score > max) {
      const float shrink = std::exp(max - score);  // 0 for the first key
      for (std::int64_t d = 0; d < Dv; ++d) o[d] *= shrink;
      sum *= static_cast<double>(shrink);
      max = score;
    }
    const float weight = std::exp(score - max);
    const float* v = layer.v + j * cache.v_row() + kv * Dv;
    for (std::int64_t d = 0; d < Dv; ++d) o[d] += weight * v[d];
    sum += static_cast<double>(weight);
  }
  const float inverse = sum > 0 ? static_cast<float>(1 / sum) : 0;
  for (std::int64_t d = 0; d < Dv; ++d) o[d] *= inverse;
  if (lse != nullptr) *lse = max + static_cast<float>(std::log(sum));
}

}  // namespace

extern "C" {

int kvc_create(assay_ctx* ctx, const kvc_config* config, kvc** out) {
  if (ctx == nullptr || config == nullptr || out == nullptr) return ASSAY_EINVAL;
  const kvc_config& c = *config;
  if (c.size != sizeof(kvc_config) || c.n_layers < 1 || c.n_q < 1 || c.n_kv < 1 ||
      c.n_q % c.n_kv != 0 || c.D < 1 || c.Dv < 0 || c.max_seqs < 0 || c.max_tokens < 0 ||
      c.max_len < 0 || c.window == 0 || c.window < -1) {
    return ASSAY_EINVAL;
  }
  if (c.dtype != ASSAY_F32 || c.window != -1 || c.quant != 0 || c.sinks != 0) return ASSAY_ENOTSUP;
  auto* cache = new kvc;
  cache->ctx = ctx;
  cache->c = c;
  if (c.Dv == 0) cache->c.Dv = c.D;
  cache->sequences.resize(static_cast<std::size_t>(c.max_seqs));
  *out = cache;
  return ASSAY_OK;
}

void kvc_destroy(kvc* cache) {
  for (std::int32_t s = 0; cache != nullptr && s < cache->c.max_seqs; ++s) cache->close(s);
  delete cache;
}

int kvc_seq_new(kvc* cache, std::int32_t* slot) {
  return cache == nullptr || slot == nullptr ? ASSAY_EINVAL : cache->open(slot);
}

int kvc_seq_free(kvc* cache, std::int32_t slot) {
  if (cache == nullptr) return ASSAY_EINVAL;
  if (!cache->known(slot)) return ASSAY_ESTATE;
  cache->close(slot);
  return ASSAY_OK;
}

int kvc_truncate(kvc* cache, std::int32_t slot, std::int64_t new_len) {
  if (cache == nullptr || new_len < 0) return ASSAY_EINVAL;
  if (!cache->known(slot)) return ASSAY_ESTATE;
  std::int64_t longest = 0;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l)
    longest = std::max(longest, cache->layer(slot, l).length);
  if (new_len > longest) return ASSAY_ESTATE;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l) {
    Layer& layer = cache->layer(slot, l);
    layer.length = std::min(layer.length, new_len);
    if (layer.length == 0) cache->release(layer);
  }
  return ASSAY_OK;
}

int kvc_fork(kvc* cache, std::int32_t src, std::int32_t* dst) {
  if (cache == nullptr || dst == nullptr) return ASSAY_EINVAL;
  if (!cache->known(src)) return ASSAY_ESTATE;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l) {
    if (cache->tokens(l) + cache->layer(src, l).length > cache->c.max_tokens) return ASSAY_ECAP;
  }
  std::int32_t copy;
  const int status = cache->open(&copy);
  if (status != ASSAY_OK) return status;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l) {
    const Layer& from = cache->layer(src, l);
    Layer& to = cache->layer(copy, l);
    if (from.length == 0) continue;
    if (!cache->grow(to, from.length)) {
      cache->close(copy);
      return ASSAY_ENOMEM;
    }
    to.length = from.length;
    std::memcpy(to.k, from.k, static_cast<std::size_t>(from.length * cache->k_row()) * 4);
    std::memcpy(to.v, from.v, static_cast<std::size_t>(from.length * cache->v_row()) * 4);
  }
  *dst = copy;
  return ASSAY_OK;
}

int kvc_append(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
               const std::int64_t* cu, const void* k, const void* v) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  if (k == nullptr || v == nullptr) return ASSAY_EINVAL;
  if (cache->tokens(layer) + cu[n] > cache->c.max_tokens) return ASSAY_ECAP;
  for (std::int32_t b = 0; b < n; ++b) {
    if (cache->layer(slots[b], layer).length + cu[b + 1] - cu[b] > cache->c.max_len)
      return ASSAY_ECAP;
  }
  for (std::int32_t b = 0; b < n; ++b) {
    Layer& to = cache->layer(slots[b], layer);
    if (!cache->grow(to, to.length + cu[b + 1] - cu[b])) return ASSAY_ENOMEM;
  }
  for (std::int32_t b = 0; b < n; ++b) {
    Layer& to = cache->layer(slots[b], layer);
    const std::int64_t rows = cu[b + 1] - cu[b], k_row = cache->k_row(), v_row = cache->v_row();
    std::memcpy(to.k + to.length * k_row, static_cast<const float*>(k) + cu[b] * k_row,
                static_cast<std::size_t>(rows * k_row) * 4);
    std::memcpy(to.v + to.length * v_row, static_cast<const float*>(v) + cu[b] * v_row,
                static_cast<std::size_t>(rows * v_row) * 4);
    to.length += rows;
  }
  return ASSAY_OK;
}

int kvc_attend(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
               const std::int64_t* cu, const void* q, float scale, void* o, float* lse) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  if (q == nullptr || o == nullptr) return ASSAY_EINVAL;
  const kvc_config& c = cache->c;
  std::atomic<std::int64_t> next{0};
  // Work is handed out by row and query head.
  const auto work = [&] {
    for (std::int64_t i; (i = next.fetch_add(1)) < cu[n] * c.n_q;) {
      const std::int64_t row = i / c.n_q, head = i % c.n_q;
      const auto b = static_cast<std::int32_t>(std::upper_bound(cu, cu + n + 1, row) - cu - 1);
      const Layer& history = cache->layer(slots[b], layer);
      const std::int64_t visible = history.length - (cu[b + 1] - row) + 1;
      attend_head(*cache, history, visible, head / (c.n_q / c.n_kv),
                  static_cast<const float*>(q) + i * c.D, scale, static_cast<float*>(o) + i * c.Dv,
                  lse == nullptr ? nullptr : lse + i);
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < cache->ctx->nthreads; ++t) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  return ASSAY_OK;
}

std::int64_t kvc_len(kvc* cache, std::int32_t layer, std::int32_t slot) {
  if (cache == nullptr || layer < 0 || layer >= cache->c.n_layers || !cache->known(slot)) return -1;
  return cache->layer(slot, layer).length;
}

int kvc_bytes(kvc* cache, std::int64_t* live, std::int64_t* reserved) {
  if (cache == nullptr || live == nullptr || reserved == nullptr) return ASSAY_EINVAL;
  std::int64_t tokens = 0;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l) tokens += cache->tokens(l);
  *live = tokens * (cache->k_row() + cache->v_row()) * 4;
  *reserved = cache->reserved;
  return ASSAY_OK;
}

int kvc_read(kvc* cache, std::int32_t layer, std::int32_t slot, std::int64_t t0, std::int64_t t1,
             void* k, void* v) {
  if (cache == nullptr || layer < 0 || layer >= cache->c.n_layers) return ASSAY_EINVAL;
  if (!cache->known(slot)) return ASSAY_ESTATE;
  const Layer& from = cache->layer(slot, layer);
  if (t0 < 0 || t1 < t0 || t1 > from.length) return ASSAY_EINVAL;
  if (t1 == t0) return ASSAY_OK;
  if (k == nullptr || v == nullptr) return ASSAY_EINVAL;
  std::memcpy(k, from.k + t0 * cache->k_row(),
              static_cast<std::size_t>((t1 - t0) * cache->k_row()) * 4);
  std::memcpy(v, from.v + t0 * cache->v_row(),
              static_cast<std::size_t>((t1 - t0) * cache->v_row()) * 4);
  return ASSAY_OK;
}

}  // extern "C"
