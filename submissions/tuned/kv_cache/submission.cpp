// Sample entrant of assay, not a model's answer: fast and correct, in its own way. Pages of 64
// tokens hold the keys of a head transposed, so that scores of 64 tokens at a time need no sum
// across lanes, and its values as rows. Forks share pages and copy the one they write to. Heads and
// ranges of pages are shared among threads. fp32, windows that give pages back, sinks, values of
// another width; no quantisation, no bf16.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <thread>
#include <vector>

#include "abi.h"

namespace {

#if defined(__AVX512F__)
constexpr std::int64_t kWidth = 16;
#else
constexpr std::int64_t kWidth = 8;
#endif
constexpr std::int64_t kPage = 64, kVecs = kPage / kWidth;
// Vectors of sums that so many rows have at a time: as many as the registers hold.
constexpr std::int64_t sums_of(std::int64_t rows) {
  return kWidth == 16 || rows <= 2 ? 4 : 2;
}
constexpr float kInf = std::numeric_limits<float>::infinity();
typedef float Vec __attribute__((vector_size(4 * kWidth)));
typedef std::int32_t VecI __attribute__((vector_size(4 * kWidth)));

Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }

// exp of x <= 0 to about 2 ulp: 2^n times a polynomial, 0 below -87.
Vec exp_of(Vec x) {
  const Vec bounded = x > -87.0f ? x : Vec{} - 87.0f;
  const Vec shifted = bounded * 1.44269504f + 12582912.0f, n = shifted - 12582912.0f;
  const Vec r = bounded - n * 0.693359375f + n * 2.12194440e-4f;
  Vec y = r * 1.9875691500e-4f + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * (r * r) + r + 1.0f;
  VecI bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << 23) + 0x3f800000;
  Vec power;
  std::memcpy(&power, &bits, sizeof power);
  return x > -87.0f ? y * power : Vec{};
}

// At the start of a page; keys [n_kv, D, kPage] and values [n_kv, kPage, Dv] follow.
struct Page {
  std::int64_t holders = 1;
};
constexpr std::int64_t kHeader = 64;

float* elements(Page* page) {
  return reinterpret_cast<float*>(reinterpret_cast<char*>(page) + kHeader);
}

struct Layer {
  std::int64_t length = 0;
  std::vector<Page*> pages;  // NULL: given back
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
  std::int64_t pages = 0;

  std::int64_t head_floats() const { return kPage * (c.D + c.Dv); }
  std::int64_t page_bytes() const { return kHeader + c.n_kv * head_floats() * 4; }

  bool known(std::int32_t slot) const {
    return slot >= 0 && slot < c.max_seqs && sequences[static_cast<std::size_t>(slot)].alive;
  }
  Layer& layer(std::int32_t slot, std::int32_t l) {
    return sequences[static_cast<std::size_t>(slot)].layers[static_cast<std::size_t>(l)];
  }

  Page* new_page() {
    void* p = ctx->alloc(ctx, static_cast<std::size_t>(page_bytes()), 64, 0);
    if (p == nullptr) return nullptr;
    ++pages;
    // Unused places are read, and their weights are 0.
    std::memset(p, 0, static_cast<std::size_t>(page_bytes()));
    return new (p) Page;
  }

  void drop(Page*& page) {
    if (page != nullptr && --page->holders == 0) {
      ctx->free(ctx, page);
      --pages;
    }
    page = nullptr;
  }

  void truncate(Layer& layer, std::int64_t length) {
    layer.length = std::min(layer.length, length);
    const auto keep = static_cast<std::size_t>((layer.length + kPage - 1) / kPage);
    while (layer.pages.size() > keep) {
      drop(layer.pages.back());
      layer.pages.pop_back();
    }
  }

  // Pages that an append has put a copy in the place of, and for which layer.
  using Displaced = std::vector<std::pair<Layer*, Page*>>;

  // The page for the next token, held by nobody else; NULL when there is no memory.
  Page* tail(Layer& layer, Displaced& displaced) {
    if (layer.length % kPage == 0) {
      Page* page = new_page();
      if (page != nullptr) layer.pages.push_back(page);
      return page;
    }
    Page*& last = layer.pages.back();
    if (last->holders == 1) return last;
    Page* copy = new_page();
    if (copy == nullptr) return nullptr;
    std::memcpy(elements(copy), elements(last), static_cast<std::size_t>(page_bytes() - kHeader));
    displaced.emplace_back(&layer, last);
    return last = copy;
  }

  // Pages that no row can see any more, given the length before an append that succeeded. A
  // truncation may come first, and the rows of a batch stand further below.
  void release_old(Layer& layer, std::int64_t length_before) {
    const std::int64_t rows = std::max<std::int64_t>(layer.length - length_before, KVC_ROLLBACK);
    for (std::int64_t i = 0; c.window > 0 && i < std::ssize(layer.pages); ++i) {
      const bool old = (i + 1) * kPage <= layer.length - KVC_ROLLBACK - rows - c.window;
      if (old && i * kPage >= c.sinks) drop(layer.pages[static_cast<std::size_t>(i)]);
    }
  }

  bool append(Layer& layer, std::int64_t n, const float* k, const float* v, Displaced& displaced) {
    while (n > 0) {
      Page* page = tail(layer, displaced);
      if (page == nullptr) return false;
      const std::int64_t at = layer.length % kPage, count = std::min(n, kPage - at);
      for (std::int64_t head = 0; head < c.n_kv; ++head) {
        float* keys = elements(page) + head * head_floats();
        float* values = keys + kPage * c.D;
        for (std::int64_t d = 0; d < c.D; ++d) {
          for (std::int64_t t = 0; t < count; ++t)
            keys[d * kPage + at + t] = k[(t * c.n_kv + head) * c.D + d];
        }
        for (std::int64_t t = 0; t < count; ++t) {
          std::memcpy(values + (at + t) * c.Dv, v + (t * c.n_kv + head) * c.Dv,
                      static_cast<std::size_t>(c.Dv) * 4);
        }
      }
      layer.length += count;
      n -= count;
      k += count * c.n_kv * c.D;
      v += count * c.n_kv * c.Dv;
    }
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
      if (known(s)) continue;
      sequences[static_cast<std::size_t>(s)] = {
          true, std::vector<Layer>(static_cast<std::size_t>(c.n_layers))};
      *slot = s;
      return ASSAY_OK;
    }
    return ASSAY_ECAP;
  }
};

namespace {

struct Call {
  kvc* cache;
  std::int32_t layer;
  const std::int32_t* slots;
  const std::int64_t* cu;
  const float* q;
  float scale;
  float *o, *lse;
};

// Up to kRows query rows of one key head, which stand next to each other: rows of the group's
// heads, then of the next token. They pass over the pages [begin, end) of a history.
constexpr std::int64_t kRows = 4;
struct Task {
  std::int32_t entry;
  std::int64_t head, row, rows, begin, end;
  float* partial;  // kRows * (Dv + 2): max, sum and values; NULL when the task is all there is
};

class Worker {
 public:
  Worker(const Call& call, float* room)
      : call_(call),
        c_(call.cache->c),
        Dv_((c_.Dv + kWidth - 1) / kWidth * kWidth),
        group_(c_.n_q / c_.n_kv),
        q_(room),
        o_(q_ + kRows * c_.D),
        p_(o_ + kRows * Dv_) {}

  static std::int64_t floats(const kvc_config& c) { return kRows * (c.D + c.Dv + kWidth + kPage); }

  void run(const Task& t) {
    const Layer& history = call_.cache->layer(call_.slots[t.entry], call_.layer);
    const std::int64_t nb = call_.cu[t.entry + 1] - call_.cu[t.entry];
    for (std::int64_t r = 0; r < kRows; ++r) {
      const std::int64_t row =
          t.row + std::min(r, t.rows - 1);  // the last row stands in for missing ones
      at_[r] = (call_.cu[t.entry] + row / group_) * c_.n_q + t.head * group_ + row % group_;
      position_[r] = history.length - nb + row / group_;
      max_[r] = -kInf;
      sum_[r] = 0;
      for (std::int64_t d = 0; d < c_.D; ++d)
        q_[r * c_.D + d] = call_.q[at_[r] * c_.D + d] * call_.scale;
    }
    std::fill(o_, o_ + kRows * Dv_, 0.0f);
    for (std::int64_t i = t.begin; i < t.end; ++i) {
      Page* page = history.pages[static_cast<std::size_t>(i)];
      if (page == nullptr || hidden(i)) continue;
      const float* keys = elements(page) + t.head * call_.cache->head_floats();
      if (t.rows == 1) {
        tile<1>(i, keys);
      } else if (t.rows == 2) {
        tile<2>(i, keys);
      } else {
        tile<kRows>(i, keys);
      }
    }
    finish(t);
  }

 private:
  bool hidden(std::int64_t page) const {
    const std::int64_t first = page * kPage, last = first + kPage - 1;
    if (first > position_[kRows - 1]) return true;
    return c_.window > 0 && last <= position_[0] - c_.window && first >= c_.sinks;
  }

  template <int kN>
  void tile(std::int64_t page, const float* keys) {
    constexpr std::int64_t kSums = sums_of(kN), kLine = 16;
    Vec s[kN][kVecs];
    for (std::int64_t first = 0; first < kVecs; first += kSums) {
      Vec part[kN][kSums] = {};
      const float* column = keys + first * kWidth;
      for (std::int64_t d = 0; d < c_.D; ++d, column += kPage) {
        for (std::int64_t i = 0; i < kSums * kWidth; i += kLine)
          __builtin_prefetch(column + 8 * kPage + i);
        for (int n = 0; n < kSums; ++n) {
          const Vec k = load(column + n * kWidth);
          for (int r = 0; r < kN; ++r) part[r][n] += q_[r * c_.D + d] * k;
        }
      }
      for (int r = 0; r < kN; ++r) std::copy_n(part[r], kSums, s[r] + first);
    }
    const std::int64_t first = page * kPage;
    const bool whole = first + kPage - 1 <= position_[0] &&
                       (c_.window < 0 || first > position_[kRows - 1] - c_.window);
    float shrink[kN];
    for (int r = 0; r < kN; ++r) shrink[r] = weigh(s[r], r, first, whole);
    const float* values = keys + c_.D * kPage;
    const std::int64_t count = std::min(kPage, position_[kRows - 1] - first + 1);
    std::int64_t d = 0;
    for (; d + kSums * kWidth <= c_.Dv; d += kSums * kWidth)
      add<kN, kSums>(values, count, d, shrink);
    for (; d + kWidth <= c_.Dv; d += kWidth) add<kN, 1>(values, count, d, shrink);
    for (; d < c_.Dv; ++d) add_one(kN, values, count, d, shrink);
  }

  bool visible(std::int64_t key, std::int64_t position) const {
    return key <= position && (c_.window < 0 || key > position - c_.window || key < c_.sinks);
  }

  // Scores to weights in p_; returns what earlier sums shrink by.
  float weigh(Vec* s, int r, std::int64_t first, bool whole) {
    float* p = p_ + r * kPage;
    for (int n = 0; n < kVecs; ++n) store(p + n * kWidth, s[n]);
    for (std::int64_t j = 0; !whole && j < kPage; ++j) {
      if (!visible(first + j, position_[r])) p[j] = -kInf;
    }
    Vec most = load(p);
    for (int n = 1; n < kVecs; ++n) {
      const Vec x = load(p + n * kWidth);
      most = x > most ? x : most;
    }
    float max = max_[r];
    for (int i = 0; i < kWidth; ++i) max = std::max(max, most[i]);
    if (max == -kInf) {
      std::fill(p, p + kPage, 0.0f);
      return 1;
    }
    Vec sum{};
    for (int n = 0; n < kVecs; ++n) {
      const Vec w = exp_of(load(p + n * kWidth) - max);
      store(p + n * kWidth, w);
      sum += w;
    }
    float total = 0;
    for (int i = 0; i < kWidth; ++i) total += sum[i];
    const float shrink = std::exp(max_[r] - max);
    sum_[r] = sum_[r] * shrink + total;
    max_[r] = max;
    return shrink;
  }

  template <int kN, int kV>
  void add(const float* values, std::int64_t count, std::int64_t d, const float* shrink) {
    Vec s[kN][kV];
    for (int r = 0; r < kN; ++r) {
      for (int n = 0; n < kV; ++n) s[r][n] = load(o_ + r * Dv_ + d + n * kWidth) * shrink[r];
    }
    for (std::int64_t j = 0; j < count; ++j) {
      const float* row = values + j * c_.Dv + d;
      for (int n = 0; n < kV; ++n) {
        __builtin_prefetch(row + 16 * c_.Dv + n * kWidth);
        const Vec v = load(row + n * kWidth);
        for (int r = 0; r < kN; ++r) s[r][n] += p_[r * kPage + j] * v;
      }
    }
    for (int r = 0; r < kN; ++r) {
      for (int n = 0; n < kV; ++n) store(o_ + r * Dv_ + d + n * kWidth, s[r][n]);
    }
  }

  void add_one(int rows, const float* values, std::int64_t count, std::int64_t d,
               const float* shrink) {
    for (int r = 0; r < rows; ++r) {
      float sum = o_[r * Dv_ + d] * shrink[r];
      for (std::int64_t j = 0; j < count; ++j) sum += p_[r * kPage + j] * values[j * c_.Dv + d];
      o_[r * Dv_ + d] = sum;
    }
  }

  void finish(const Task& t) {
    for (std::int64_t r = 0; r < t.rows; ++r) {
      if (t.partial != nullptr) {
        float* to = t.partial + r * (c_.Dv + 2);
        to[0] = max_[r];
        to[1] = sum_[r];
        std::copy_n(o_ + r * Dv_, c_.Dv, to + 2);
        continue;
      }
      const float inverse = sum_[r] > 0 ? 1 / sum_[r] : 0;
      for (std::int64_t d = 0; d < c_.Dv; ++d)
        call_.o[at_[r] * c_.Dv + d] = o_[r * Dv_ + d] * inverse;
      if (call_.lse != nullptr) call_.lse[at_[r]] = max_[r] + std::log(sum_[r]);
    }
  }

  const Call& call_;
  const kvc_config& c_;
  std::int64_t Dv_, group_;
  float *q_, *o_, *p_;
  std::int64_t at_[kRows], position_[kRows];
  float max_[kRows], sum_[kRows];
};

void merge(const Call& call, const Task* parts, std::size_t n) {
  const kvc_config& c = call.cache->c;
  const std::int64_t group = c.n_q / c.n_kv, wide = c.Dv + 2;
  for (std::int64_t r = 0; r < parts->rows; ++r) {
    const std::int64_t row = parts->row + r;
    const std::int64_t at =
        (call.cu[parts->entry] + row / group) * c.n_q + parts->head * group + row % group;
    float max = -kInf, sum = 0;
    for (std::size_t i = 0; i < n; ++i) max = std::max(max, parts[i].partial[r * wide]);
    float* o = call.o + at * c.Dv;
    std::fill(o, o + c.Dv, 0.0f);
    for (std::size_t i = 0; i < n && max > -kInf; ++i) {
      const float* part = parts[i].partial + r * wide;
      const float factor = std::exp(part[0] - max);
      sum += part[1] * factor;
      for (std::int64_t d = 0; d < c.Dv; ++d) o[d] += part[2 + d] * factor;
    }
    for (std::int64_t d = 0; d < c.Dv; ++d) o[d] = sum > 0 ? o[d] / sum : 0;
    if (call.lse != nullptr) call.lse[at] = max + std::log(sum);
  }
}

int attend(const Call& call, std::int32_t n) {
  kvc& cache = *call.cache;
  const kvc_config& c = cache.c;
  const std::int64_t group = c.n_q / c.n_kv;
  std::int64_t pages = 0;
  for (std::int32_t b = 0; b < n; ++b)
    pages += std::ssize(cache.layer(call.slots[b], call.layer).pages) * c.n_kv;
  const std::int64_t longest =
      std::max<std::int64_t>(8, pages / (12 * std::max(1, cache.ctx->nthreads)));
  std::vector<Task> tasks;
  std::vector<std::pair<std::size_t, std::size_t>> split;  // first task, parts
  for (std::int32_t b = 0; b < n; ++b) {
    const std::int64_t rows = (call.cu[b + 1] - call.cu[b]) * group;
    const std::int64_t all = std::ssize(cache.layer(call.slots[b], call.layer).pages);
    const std::int64_t parts = std::max<std::int64_t>(1, (all + longest - 1) / longest);
    for (std::int64_t i = 0; i < c.n_kv * ((rows + kRows - 1) / kRows); ++i) {
      const std::int64_t head = i % c.n_kv, row = i / c.n_kv * kRows;
      if (parts > 1) split.emplace_back(tasks.size(), parts);
      for (std::int64_t p = 0; p < parts; ++p) {
        tasks.push_back({b, head, row, std::min(kRows, rows - row), all * p / parts,
                         all * (p + 1) / parts, nullptr});
      }
    }
  }
  const int threads = pages * kPage * group * c.D > 50000 ? std::max(1, cache.ctx->nthreads) : 1;
  const std::int64_t own = Worker::floats(c), wide = kRows * (c.Dv + 2);
  std::int64_t partials = 0;
  for (const auto& [first, parts] : split) partials += static_cast<std::int64_t>(parts) * wide;
  const auto bytes = static_cast<std::size_t>(threads * own + partials) * sizeof(float);
  auto* room = static_cast<float*>(cache.ctx->alloc(cache.ctx, bytes, 64, 0));
  if (room == nullptr) return ASSAY_ENOMEM;
  float* next_partial = room + threads * own;
  for (const auto& [first, parts] : split) {
    for (std::size_t i = 0; i < parts; ++i, next_partial += wide)
      tasks[first + i].partial = next_partial;
  }
  std::atomic<std::size_t> next{0};
  const auto work = [&](int thread) {
    Worker worker(call, room + thread * own);
    for (std::size_t i; (i = next.fetch_add(1)) < tasks.size();) worker.run(tasks[i]);
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& other : others) other.join();
  for (const auto& [first, parts] : split) merge(call, tasks.data() + first, parts);
  cache.ctx->free(cache.ctx, room);
  return ASSAY_OK;
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

}  // namespace

extern "C" {

int kvc_create(assay_ctx* ctx, const kvc_config* config, kvc** out) {
  if (ctx == nullptr || config == nullptr || out == nullptr) return ASSAY_EINVAL;
  const kvc_config& c = *config;
  if (c.size != sizeof(kvc_config) || c.n_layers < 1 || c.n_q < 1 || c.n_kv < 1 ||
      c.n_q % c.n_kv != 0 || c.D < 1 || c.Dv < 0 || c.max_seqs < 0 || c.max_tokens < 0 ||
      c.max_len < 0 || c.window == 0 || c.window < -1 || c.sinks < 0) {
    return ASSAY_EINVAL;
  }
  if (c.dtype != ASSAY_F32 || c.quant != 0) return ASSAY_ENOTSUP;
  auto* cache = new kvc;
  cache->ctx = ctx;
  cache->c = c;
  if (c.Dv == 0) cache->c.Dv = c.D;
  cache->sequences.resize(static_cast<std::size_t>(c.max_seqs));
  *out = cache;
  return ASSAY_OK;
}

int kvc_seq_free(kvc* cache, std::int32_t slot) {
  if (cache == nullptr) return ASSAY_EINVAL;
  if (!cache->known(slot)) return ASSAY_ESTATE;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l) cache->truncate(cache->layer(slot, l), 0);
  cache->sequences[static_cast<std::size_t>(slot)] = {};
  return ASSAY_OK;
}

void kvc_destroy(kvc* cache) {
  for (std::int32_t s = 0; cache != nullptr && s < cache->c.max_seqs; ++s) kvc_seq_free(cache, s);
  delete cache;
}

int kvc_seq_new(kvc* cache, std::int32_t* slot) {
  return cache == nullptr || slot == nullptr ? ASSAY_EINVAL : cache->open(slot);
}

int kvc_truncate(kvc* cache, std::int32_t slot, std::int64_t new_len) {
  if (cache == nullptr || new_len < 0) return ASSAY_EINVAL;
  if (!cache->known(slot)) return ASSAY_ESTATE;
  std::int64_t longest = 0;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l)
    longest = std::max(longest, cache->layer(slot, l).length);
  if (new_len > longest) return ASSAY_ESTATE;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l)
    cache->truncate(cache->layer(slot, l), new_len);
  return ASSAY_OK;
}

int kvc_fork(kvc* cache, std::int32_t src, std::int32_t* dst) {
  if (cache == nullptr || dst == nullptr) return ASSAY_EINVAL;
  if (!cache->known(src)) return ASSAY_ESTATE;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l) {
    if (cache->tokens(l) + cache->layer(src, l).length > cache->c.max_tokens) return ASSAY_ECAP;
  }
  const int status = cache->open(dst);
  if (status != ASSAY_OK) return status;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l) {
    cache->layer(*dst, l) = cache->layer(src, l);
    for (Page* page : cache->layer(src, l).pages) {
      if (page != nullptr) ++page->holders;
    }
  }
  return ASSAY_OK;
}

int kvc_append(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
               const std::int64_t* cu, const void* k, const void* v) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  if (k == nullptr || v == nullptr) return ASSAY_EINVAL;
  const kvc_config& c = cache->c;
  if (cache->tokens(layer) + cu[n] > c.max_tokens) return ASSAY_ECAP;
  std::vector<std::int64_t> before;
  for (std::int32_t b = 0; b < n; ++b) {
    before.push_back(cache->layer(slots[b], layer).length);
    if (before.back() + cu[b + 1] - cu[b] > c.max_len) return ASSAY_ECAP;
  }
  bool done = true;
  kvc::Displaced displaced;
  for (std::int32_t b = 0; b < n && done; ++b) {
    done = cache->append(cache->layer(slots[b], layer), cu[b + 1] - cu[b],
                         static_cast<const float*>(k) + cu[b] * c.n_kv * c.D,
                         static_cast<const float*>(v) + cu[b] * c.n_kv * c.Dv, displaced);
  }
  for (std::int32_t b = 0; b < n; ++b) {
    const std::int64_t length = before[static_cast<std::size_t>(b)];
    if (done) {
      cache->release_old(cache->layer(slots[b], layer), length);
    } else {
      cache->truncate(cache->layer(slots[b], layer), length);
    }
  }
  for (auto& [grown, page] : displaced) {
    if (!done) std::swap(grown->pages.back(), page);  // the copy is the last page again
    cache->drop(page);
  }
  return done ? ASSAY_OK : ASSAY_ENOMEM;
}

int kvc_attend(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
               const std::int64_t* cu, const void* q, float scale, void* o, float* lse) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  if (q == nullptr || o == nullptr) return ASSAY_EINVAL;
  return attend(
      {cache, layer, slots, cu, static_cast<const float*>(q), scale, static_cast<float*>(o), lse},
      n);
}

std::int64_t kvc_len(kvc* cache, std::int32_t layer, std::int32_t slot) {
  if (cache == nullptr || layer < 0 || layer >= cache->c.n_layers || !cache->known(slot)) return -1;
  return cache->layer(slot, layer).length;
}

int kvc_bytes(kvc* cache, std::int64_t* live, std::int64_t* reserved) {
  if (cache == nullptr || live == nullptr || reserved == nullptr) return ASSAY_EINVAL;
  *live = *reserved = cache->pages * cache->page_bytes();
  return ASSAY_OK;
}

int kvc_read(kvc* cache, std::int32_t layer, std::int32_t slot, std::int64_t t0, std::int64_t t1,
             void* k, void* v) {
  if (cache == nullptr || layer < 0 || layer >= cache->c.n_layers) return ASSAY_EINVAL;
  if (!cache->known(slot)) return ASSAY_ESTATE;
  const Layer& from = cache->layer(slot, layer);
  if (t0 < 0 || t1 < t0 || t1 > from.length) return ASSAY_EINVAL;
  if (t1 > t0 && (k == nullptr || v == nullptr)) return ASSAY_EINVAL;
  const kvc_config& c = cache->c;
  for (std::int64_t t = t0; t < t1; ++t) {
    for (std::int64_t head = 0; head < c.n_kv; ++head) {
      const float* keys =
          elements(from.pages[static_cast<std::size_t>(t / kPage)]) + head * cache->head_floats();
      const std::int64_t row = (t - t0) * c.n_kv + head;
      for (std::int64_t d = 0; d < c.D; ++d)
        static_cast<float*>(k)[row * c.D + d] = keys[d * kPage + t % kPage];
      std::memcpy(static_cast<float*>(v) + row * c.Dv, keys + kPage * c.D + t % kPage * c.Dv,
                  static_cast<std::size_t>(c.Dv) * 4);
    }
  }
  return ASSAY_OK;
}

}  // extern "C"
