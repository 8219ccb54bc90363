// The expert implementation for a CPU.
//
// Napkin arithmetic. Decode, B = 8, L = 2048, 32 query heads on 8 key heads, D = 128: 134 MB of
// keys and values and 268 MF, 2 flops a byte where the cores could do ten times that. Bound by
// memory: 7 to 13 ms at 10 to 20 GB/s. So each key and value is read once for all query heads of
// its group, from pages that are streams of 4 KiB and more. What a copy of the data per query head
// would cost is a factor of 4.
//
// A page holds 32 tokens of one layer; for each key head its keys, then its values. 32 keys are
// what one step of the online softmax works on, and what shares the scale of a quantised channel.
// Every line that is used has the same line of the next page asked for. Measured on one core, the
// shape above: 6.4 ms, 21 GB/s, what a plain sum over an array reaches there. Asking in bursts,
// once for each group of keys, takes 8.5 ms; leaving it to the hardware 15.8 ms.
//
// Up to 15 query rows of a key head: lanes are elements of the head; 16 sums, rows times keys,
// stay in registers and are transposed at the end, so that the horizontal step costs 3 operations a
// sum. From the cache this does 58 GF/s a core with 4 rows and 29 GF/s, 57 GB/s, with one.
//
// More rows, as in prefill: lanes are query rows, an element of a key or value is one broadcast,
// and there is no horizontal step at all; 16 accumulators for 10 loads keep the FMA units busy.
// 128 rows on L = 2048, 8 heads, D = 64: 0.54 GF in 6.3 ms of one core, 85 GF/s; the 2.1 M
// exponentials are a tenth of that.
//
// Work is split over threads by sequence, key head, rows and, where these are too few, ranges of
// keys, whose results are merged in order: L = 32768, one row, 8 heads is 134 MB in 32 parts. Forks
// that decode together have their common pages read once, as one task for the rows of all.
// Append copies each row once, to where it stays; nothing moves when a sequence grows. Prompts of
// more than 2 MiB are copied by all threads.
//
// par/storage.h has the pages, par/task.h and par/plan.h what is to be done, par/attention.h how.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

#include "abi.h"
#include "common/arguments.h"
#include "par/attention.h"
#include "par/plan.h"
#include "par/storage.h"
#include "shared/baselines/threads.h"

struct kvc : Storage {};

namespace {

// Parts are taken in order, so that the result does not depend on which thread did what.
void merge_rows(const Job& job, const Plan& plan, const Merge& merge, float* values) {
  const std::int64_t Dv = job.c().Dv, stride = Dv + 2;
  const Task& own = plan.tasks[merge.first_task];
  std::vector<const float*> parts;
  for (std::size_t i = 0; i < merge.shared_tasks; ++i) {
    parts.push_back(plan.tasks[merge.first_shared + i].partial +
                    (merge.shared_row + own.row) * stride);
  }
  for (std::size_t i = 0; i < merge.tasks; ++i)
    parts.push_back(plan.tasks[merge.first_task + i].partial);
  for (std::int64_t row = 0; row < own.rows; ++row) {
    float max = -kInf, sum = 0;
    for (const float* part : parts) max = std::max(max, part[0]);
    std::fill(values, values + Dv, 0.0f);
    for (const float*& part : parts) {
      const float factor = max == -kInf ? 0 : std::exp(part[0] - max);
      sum += factor * part[1];
      for (std::int64_t d = 0; d < Dv; ++d) values[d] += factor * part[2 + d];
      part += stride;
    }
    job.finish(job.index(own, row), max, sum, values, 1);
  }
}

int attend(const Job& job, std::int32_t n) {
  const kvc_config& c = job.c();
  assay_ctx* ctx = job.cache->ctx;
  Plan plan = Planner(job, n).run();
  mark_partials(plan, c.Dv + 2, nullptr);
  // Starting a thread costs as much as some hundred thousand multiplications.
  const int most = plan.work < 4e5 ? 1 : std::max(1, ctx->nthreads);
  const int threads =
      static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(most), plan.tasks.size()));
  const std::int64_t each = Attention::floats(c);
  const auto floats = static_cast<std::size_t>(each * threads + plan.partial_floats);
  auto* room = static_cast<float*>(ctx->alloc(ctx, floats * sizeof(float), 64, 0));
  if (room == nullptr) return ASSAY_ENOMEM;
  mark_partials(plan, c.Dv + 2, room + each * threads);
  std::atomic<std::size_t> next{0};
  on_threads(threads, [&](int thread) {
    Attention attention(job, room + each * thread);
    for (std::size_t i; (i = next.fetch_add(1)) < plan.tasks.size();) attention.run(plan.tasks[i]);
  });
  for (const Merge& merge : plan.merges) merge_rows(job, plan, merge, room);
  ctx->free(ctx, room);
  return ASSAY_OK;
}

// --- arguments -----------------------------------------------------------------------------------

// The depths of all nodes, or EINVAL.
int check_trees(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                const std::int64_t* cu, const std::int32_t* parent,
                std::vector<std::int32_t>& depth) {
  if (parent == nullptr) return ASSAY_EINVAL;
  depth.resize(static_cast<std::size_t>(cu[n]));
  for (std::int32_t b = 0; b < n; ++b) {
    if (cu[b + 1] - cu[b] > cache->layer_of(slots[b], layer).length) return ASSAY_EINVAL;
    for (std::int64_t i = cu[b]; i < cu[b + 1]; ++i) {
      if (parent[i] < -1 || parent[i] >= i - cu[b]) return ASSAY_EINVAL;
      depth[static_cast<std::size_t>(i)] =
          parent[i] < 0 ? 0 : depth[static_cast<std::size_t>(cu[b] + parent[i])] + 1;
    }
  }
  return ASSAY_OK;
}

}  // namespace

extern "C" {

int kvc_create(assay_ctx* ctx, const kvc_config* config, kvc** out) {
  if (ctx == nullptr || config == nullptr || out == nullptr || !valid(*config)) return ASSAY_EINVAL;
  try {
    auto cache =
        std::make_unique<kvc>(kvc{{ctx, *config, config->dtype == ASSAY_BF16 ? 2 : 4, {}, {}}});
    if (cache->c.Dv == 0) cache->c.Dv = cache->c.D;
    cache->sequences.resize(static_cast<std::size_t>(config->max_seqs));
    cache->tokens.resize(static_cast<std::size_t>(config->n_layers));
    *out = cache.release();
  } catch (const std::bad_alloc&) {
    return ASSAY_ENOMEM;
  }
  return ASSAY_OK;
}

void kvc_destroy(kvc* cache) {
  if (cache == nullptr) return;
  for (std::int32_t s = 0; s < cache->c.max_seqs; ++s) {
    if (cache->known(s)) cache->clear(s);
  }
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
  cache->clear(slot);
  return ASSAY_OK;
}

int kvc_truncate(kvc* cache, std::int32_t slot, std::int64_t new_len) {
  if (cache == nullptr || new_len < 0) return ASSAY_EINVAL;
  if (!cache->known(slot)) return ASSAY_ESTATE;
  std::int64_t longest = 0;
  for (const Layer& layer : cache->sequence(slot).layers) longest = std::max(longest, layer.length);
  if (new_len > longest) return ASSAY_ESTATE;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l) cache->truncate(slot, l, new_len);
  return ASSAY_OK;
}

int kvc_fork(kvc* cache, std::int32_t src, std::int32_t* dst) {
  if (cache == nullptr || dst == nullptr) return ASSAY_EINVAL;
  if (!cache->known(src)) return ASSAY_ESTATE;
  const std::vector<Layer>& layers = cache->sequence(src).layers;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    if (cache->tokens[l] + layers[l].length > cache->c.max_tokens) return ASSAY_ECAP;
  }
  const int status = cache->free_slot(dst);
  if (status != ASSAY_OK) return status;
  for (std::size_t l = 0; l < layers.size(); ++l) {
    cache->tokens[l] += layers[l].length;
    for (Page* page : layers[l].pages) {
      if (page != nullptr) ++page->holders;
    }
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
  if (cache->tokens[static_cast<std::size_t>(layer)] + cu[n] > c.max_tokens) return ASSAY_ECAP;
  for (std::int32_t b = 0; b < n; ++b) {
    if (cache->layer_of(slots[b], layer).length + cu[b + 1] - cu[b] > c.max_len) return ASSAY_ECAP;
  }
  std::vector<Copy> copies;
  std::vector<Storage::Growth> growths;
  try {
    for (std::int32_t b = 0; b < n; ++b) {
      growths.push_back(cache->grow(slots[b], layer));
      cache->append(growths.back(), cu[b + 1] - cu[b],
                    static_cast<const unsigned char*>(k) + cu[b] * c.n_kv * c.D * cache->element,
                    static_cast<const unsigned char*>(v) + cu[b] * c.n_kv * c.Dv * cache->element,
                    copies);
    }
    cache->copy_all(copies);
    for (const Storage::Growth& g : growths) g.layer.pages.reserve(g.kept + g.pages.size());
  } catch (const std::bad_alloc&) {
    for (const Storage::Growth& g : growths) cache->abandon(g);
    return ASSAY_ENOMEM;
  }
  for (const Storage::Growth& g : growths) cache->commit(g, layer);
  return ASSAY_OK;
}

int kvc_attend(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
               const std::int64_t* cu, const void* q, float scale, void* o, float* lse) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  if (q == nullptr || o == nullptr) return ASSAY_EINVAL;
  return attend({cache, layer, slots, cu, q, scale, o, lse}, n);
}

int kvc_attend_tree(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                    const std::int64_t* cu, const std::int32_t* parent, const void* q, float scale,
                    void* o, float* lse) {
  int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  std::vector<std::int32_t> depth;
  status = check_trees(cache, layer, n, slots, cu, parent, depth);
  if (status != ASSAY_OK) return status;
  if (q == nullptr || o == nullptr) return ASSAY_EINVAL;
  return attend({cache, layer, slots, cu, q, scale, o, lse, parent, depth.data()}, n);
}

// Which pages entries have in common is plain from their tables, so the length only has to be
// right.
int kvc_attend_shared(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                      const std::int64_t* cu, std::int64_t shared, const void* q, float scale,
                      void* o, float* lse) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK) return status;
  if (shared < 0) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < n; ++b) {
    if (shared > cache->layer_of(slots[b], layer).length) return ASSAY_EINVAL;
  }
  return kvc_attend(cache, layer, n, slots, cu, q, scale, o, lse);
}

// A page that no sequence holds goes back to the context at once, so nothing is ever left over.
int kvc_defragment(kvc* cache) { return cache == nullptr ? ASSAY_EINVAL : ASSAY_OK; }

std::int64_t kvc_len(kvc* cache, std::int32_t layer, std::int32_t slot) {
  if (cache == nullptr || layer < 0 || layer >= cache->c.n_layers || !cache->known(slot)) return -1;
  return cache->layer_of(slot, layer).length;
}

int kvc_bytes(kvc* cache, std::int64_t* live, std::int64_t* reserved) {
  if (cache == nullptr || live == nullptr || reserved == nullptr) return ASSAY_EINVAL;
  *live = cache->live;
  *reserved = cache->reserved;
  return ASSAY_OK;
}

int kvc_read(kvc* cache, std::int32_t layer, std::int32_t slot, std::int64_t t0, std::int64_t t1,
             void* k, void* v) {
  if (cache == nullptr || layer < 0 || layer >= cache->c.n_layers) return ASSAY_EINVAL;
  if (!cache->known(slot)) return ASSAY_ESTATE;
  const Layer& history = cache->layer_of(slot, layer);
  if (t0 < 0 || t1 < t0 || t1 > history.length) return ASSAY_EINVAL;
  if (t1 > t0 && (k == nullptr || v == nullptr)) return ASSAY_EINVAL;
  const kvc_config& c = cache->c;
  std::vector<float> rows(static_cast<std::size_t>(kPage * std::max(c.D, c.Dv)));
  for (std::int64_t first = t0 / kPage * kPage; first < t1; first += kPage) {
    Page* page = history.pages[static_cast<std::size_t>(first / kPage)];
    const std::int64_t begin = std::max(t0, first), end = std::min(t1, first + kPage);
    for (std::int64_t head = 0; head < c.n_kv; ++head) {
      cache->load_keys(page, head, end - first, rows.data(), c.D);
      for (std::int64_t t = begin; t < end; ++t) {
        cache->narrow_rows(
            rows.data() + (t - first) * c.D, c.D,
            static_cast<unsigned char*>(k) + ((t - t0) * c.n_kv + head) * c.D * cache->element);
      }
      cache->load_values(page, head, end - first, rows.data(), c.Dv);
      for (std::int64_t t = begin; t < end; ++t) {
        cache->narrow_rows(
            rows.data() + (t - first) * c.Dv, c.Dv,
            static_cast<unsigned char*>(v) + ((t - t0) * c.n_kv + head) * c.Dv * cache->element);
      }
    }
  }
  return ASSAY_OK;
}

}  // extern "C"
