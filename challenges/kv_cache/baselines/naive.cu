// The plain CUDA implementation: each layer of a sequence has one array of keys and one of values
// in device memory, which double when they are full; a fork copies them. A thread for each row and
// query head, two passes over its keys. fp32, values as wide as keys; no window, no quantisation.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "abi.h"

namespace {

constexpr int kThreads = 64;

// One layer of one sequence: keys and values [length, n_kv, D].
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

  cudaStream_t stream() const { return static_cast<cudaStream_t>(ctx->stream); }
  std::int64_t row() const { return std::int64_t{c.n_kv} * c.D; }

  void* take(std::int64_t bytes) {
    return ctx->alloc(ctx, static_cast<std::size_t>(bytes), 256, 1);
  }
  void give_back(void* p) {
    if (p != nullptr) ctx->free(ctx, p);
  }
  // Rows of keys or values from one array of the device to another.
  void copy(float* to, const float* from, std::int64_t rows) {
    if (rows == 0) return;
    cudaMemcpyAsync(to, from, static_cast<std::size_t>(rows * row()) * 4, cudaMemcpyDeviceToDevice,
                    stream());
  }

  bool known(std::int32_t slot) const {
    return slot >= 0 && slot < c.max_seqs && sequences[static_cast<std::size_t>(slot)].alive;
  }
  Layer& layer(std::int32_t slot, std::int32_t l) {
    return sequences[static_cast<std::size_t>(slot)].layers[static_cast<std::size_t>(l)];
  }
  std::int64_t tokens(std::int32_t l) const {
    std::int64_t sum = 0;
    for (const Sequence& s : sequences)
      sum += s.alive ? s.layers[static_cast<std::size_t>(l)].length : 0;
    return sum;
  }

  void release(Layer& layer) {
    give_back(layer.k);
    give_back(layer.v);
    reserved -= 2 * layer.capacity * row() * 4;
    layer = {};
  }

  // Room for `length` tokens; false when there is no memory.
  bool grow(Layer& layer, std::int64_t length) {
    if (length <= layer.capacity) return true;
    Layer larger;
    larger.length = layer.length;
    larger.capacity = std::max<std::int64_t>({length, 2 * layer.capacity, 16});
    larger.k = static_cast<float*>(take(larger.capacity * row() * 4));
    larger.v = static_cast<float*>(take(larger.capacity * row() * 4));
    if (larger.k == nullptr || larger.v == nullptr) {
      give_back(larger.k);
      give_back(larger.v);
      return false;
    }
    reserved += 2 * larger.capacity * row() * 4;
    copy(larger.k, layer.k, layer.length);
    copy(larger.v, layer.v, layer.length);
    release(layer);
    layer = larger;
    return true;
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

// A row of queries: the history of its sequence and how much of it the row sees.
struct QueryRow {
  const float *k, *v;
  std::int64_t visible;
};

__global__ void attend(std::int64_t rows, std::int64_t n_q, std::int64_t n_kv, std::int64_t D,
                       float scale, const QueryRow* query_rows, const float* q, float* o,
                       float* lse) {
  const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= rows * n_q) return;
  const QueryRow row = query_rows[at / n_q];
  const std::int64_t head = at % n_q / (n_q / n_kv) * D;
  const auto score = [&](std::int64_t j) {
    float dot = 0;
    for (std::int64_t d = 0; d < D; ++d) dot += q[at * D + d] * row.k[j * n_kv * D + head + d];
    return dot * scale;
  };
  float max = -INFINITY, sum = 0;
  for (std::int64_t j = 0; j < row.visible; ++j) max = fmaxf(max, score(j));
  for (std::int64_t d = 0; d < D; ++d) o[at * D + d] = 0;
  for (std::int64_t j = 0; j < row.visible; ++j) {
    const float weight = expf(score(j) - max);
    sum += weight;
    for (std::int64_t d = 0; d < D; ++d) o[at * D + d] += weight * row.v[j * n_kv * D + head + d];
  }
  for (std::int64_t d = 0; d < D && row.visible > 0; ++d) o[at * D + d] /= sum;
  if (lse != nullptr) lse[at] = row.visible > 0 ? max + logf(sum) : -INFINITY;
}

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

int launch_status() { return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL; }

}  // namespace

extern "C" {

int kvc_create(assay_ctx* ctx, const kvc_config* config, kvc** out) {
  if (ctx == nullptr || config == nullptr || out == nullptr) return ASSAY_EINVAL;
  const kvc_config& c = *config;
  if (c.size != sizeof(kvc_config) || (c.dtype != ASSAY_F32 && c.dtype != ASSAY_BF16) ||
      c.n_layers < 1 || c.n_q < 1 || c.n_kv < 1 || c.n_q % c.n_kv != 0 || c.D < 1 || c.Dv < 0 ||
      c.max_seqs < 0 || c.max_tokens < 0 || c.max_len < 0 || c.sinks < 0 || c.window == 0 ||
      c.window < -1 || (c.quant != 0 && c.quant != 4 && c.quant != 8)) {
    return ASSAY_EINVAL;
  }
  if (c.dtype != ASSAY_F32 || c.window != -1 || c.quant != 0) return ASSAY_ENOTSUP;
  if (c.Dv != 0 && c.Dv != c.D) return ASSAY_ENOTSUP;
  auto* cache = new kvc;
  cache->ctx = ctx;
  cache->c = c;
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
  std::int32_t slot;
  if (const int status = cache->open(&slot); status != ASSAY_OK) return status;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l) {
    const Layer& from = cache->layer(src, l);
    Layer& to = cache->layer(slot, l);
    if (!cache->grow(to, from.length)) {
      cache->close(slot);
      return ASSAY_ENOMEM;
    }
    to.length = from.length;
    cache->copy(to.k, from.k, from.length);
    cache->copy(to.v, from.v, from.length);
  }
  *dst = slot;
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
    const std::int64_t rows = cu[b + 1] - cu[b], row = cache->row();
    cache->copy(to.k + to.length * row, static_cast<const float*>(k) + cu[b] * row, rows);
    cache->copy(to.v + to.length * row, static_cast<const float*>(v) + cu[b] * row, rows);
    to.length += rows;
  }
  return launch_status();
}

int kvc_attend(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
               const std::int64_t* cu, const void* q, float scale, void* o, float* lse) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  if (q == nullptr || o == nullptr) return ASSAY_EINVAL;
  const kvc_config& c = cache->c;
  std::vector<QueryRow> rows;
  for (std::int32_t b = 0; b < n; ++b) {
    const Layer& history = cache->layer(slots[b], layer);
    for (std::int64_t row = cu[b]; row < cu[b + 1]; ++row) {
      rows.push_back({history.k, history.v, history.length - (cu[b + 1] - row) + 1});
    }
  }
  const auto bytes = rows.size() * sizeof(QueryRow);
  auto* device_rows = static_cast<QueryRow*>(cache->take(static_cast<std::int64_t>(bytes)));
  if (device_rows == nullptr) return ASSAY_ENOMEM;
  cudaMemcpyAsync(device_rows, rows.data(), bytes, cudaMemcpyHostToDevice, cache->stream());
  const auto blocks = static_cast<unsigned>((cu[n] * c.n_q + kThreads - 1) / kThreads);
  attend<<<blocks, kThreads, 0, cache->stream()>>>(cu[n], c.n_q, c.n_kv, c.D, scale, device_rows,
                                                   static_cast<const float*>(q),
                                                   static_cast<float*>(o), lse);
  cache->give_back(device_rows);
  return launch_status();
}

std::int64_t kvc_len(kvc* cache, std::int32_t layer, std::int32_t slot) {
  if (cache == nullptr || layer < 0 || layer >= cache->c.n_layers || !cache->known(slot)) return -1;
  return cache->layer(slot, layer).length;
}

int kvc_bytes(kvc* cache, std::int64_t* live, std::int64_t* reserved) {
  if (cache == nullptr || live == nullptr || reserved == nullptr) return ASSAY_EINVAL;
  std::int64_t tokens = 0;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l) tokens += cache->tokens(l);
  *live = 2 * tokens * cache->row() * 4;
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
  cache->copy(static_cast<float*>(k), from.k + t0 * cache->row(), t1 - t0);
  cache->copy(static_cast<float*>(v), from.v + t0 * cache->row(), t1 - t0);
  return launch_status();
}

}  // extern "C"
