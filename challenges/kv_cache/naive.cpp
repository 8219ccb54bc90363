// The plain implementation: every sequence has a list of pages of 32 tokens per layer, a page knows
// how many sequences hold it and is copied before one of several writes to it. Pages of a quantised
// cache are packed when they are full; until then, and when they are written again after a
// truncation, they hold their elements as given. Attention goes row by row, head by head, in two
// passes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

#include "abi.h"

namespace {

constexpr std::int64_t kPage = 32;   // tokens, and the tokens that share a scale of a key's channel
constexpr std::int64_t kGroup = 32;  // elements of a value that share a scale

float widen(std::uint16_t h) {
  const std::uint32_t bits = std::uint32_t{h} << 16;
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

std::uint16_t narrow(float x) {
  std::uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

// A range of values as code * step + low; both factors are stored as bfloat16, and the codes are
// made with what is stored.
struct Scale {
  std::uint16_t step, low;
};

Scale scale_of(float low, float high, int levels) {
  std::uint16_t bottom = narrow(low);
  if (widen(bottom) > low) bottom = narrow(low - std::abs(low) / 128);
  return {narrow((high - widen(bottom)) / static_cast<float>(levels) * (1 + 1.0f / 256)), bottom};
}

int encode(float x, Scale s, int levels) {
  const float step = widen(s.step);
  if (!(step > 0)) return 0;
  return std::clamp(static_cast<int>(std::lround((x - widen(s.low)) / step)), 0, levels);
}

float decode(int code, Scale s) { return static_cast<float>(code) * widen(s.step) + widen(s.low); }

// What a row sees. Examples of mistakes replace parts of it.
struct Rules {
  // Of row i of `rows` on top of a history that ends with them.
  static std::int64_t position(std::int64_t length, std::int64_t rows, std::int64_t i) {
    return length - rows + i;
  }
  static std::int64_t key_head(const kvc_config& c, std::int64_t query_head) {
    return query_head / (c.n_q / c.n_kv);
  }
  static bool visible(const kvc_config& c, std::int64_t key, std::int64_t position) {
    return key <= position && (c.window < 0 || key > position - c.window || key < c.sinks);
  }
  // Of two nodes of a tree.
  static bool is_ancestor_or_self(const std::int32_t* parent, std::int64_t node, std::int64_t row) {
    while (row > node) row = parent[row];
    return row == node;
  }
  static std::int64_t position_of_node(const std::int32_t* parent, std::int64_t prefix,
                                       std::int64_t node) {
    while ((node = parent[node]) >= 0) ++prefix;
    return prefix;
  }
  // What is subtracted from the scores before they go into the exponential.
  static float subtracted(float largest_score) { return largest_score; }
};

struct Page {
  int holders = 1;
  bool packed = false;
  unsigned char* data = nullptr;
};

struct Layer {
  std::int64_t length = 0;
  std::vector<Page*> pages;  // NULL: out of every window
};

struct Sequence {
  bool alive = false;
  std::vector<Layer> layers;
};

}  // namespace

struct kvc {
  assay_ctx* ctx;
  kvc_config c;
  std::int64_t element;  // bytes
  std::vector<Sequence> sequences;
  std::int64_t live = 0;

  // --- pages ---
  // Raw: keys [n_kv, kPage, D], then values [n_kv, kPage, Dv]. Packed: the codes in the same order,
  // then scales of keys [n_kv, D] and of values [n_kv, kPage, groups].
  std::int64_t keys() const { return std::int64_t{c.n_kv} * kPage * c.D; }
  std::int64_t values() const { return std::int64_t{c.n_kv} * kPage * c.Dv; }
  std::int64_t groups() const { return (c.Dv + kGroup - 1) / kGroup; }
  std::int64_t codes() const { return (keys() + values()) * c.quant / 8; }
  std::int64_t page_bytes(bool packed) const {
    if (!packed) return (keys() + values()) * element;
    return codes() + static_cast<std::int64_t>(sizeof(Scale)) * c.n_kv * (c.D + kPage * groups());
  }

  void* take(std::int64_t bytes) {
    void* p = ctx->alloc(ctx, static_cast<std::size_t>(bytes), 64, 0);
    if (p == nullptr) throw std::bad_alloc();
    return p;
  }

  Page* new_page(bool packed) {
    Page* page = new Page;
    page->packed = packed;
    try {
      page->data = static_cast<unsigned char*>(take(page_bytes(packed)));
    } catch (...) {
      delete page;
      throw;
    }
    live += page_bytes(packed);
    return page;
  }

  void drop(Page* page) {
    if (page == nullptr || --page->holders > 0) return;
    live -= page_bytes(page->packed);
    ctx->free(ctx, page->data);
    delete page;
  }

  Scale* key_scale(Page* p, std::int64_t head) {
    return reinterpret_cast<Scale*>(p->data + codes()) + head * c.D;
  }
  Scale* value_scale(Page* p, std::int64_t head, std::int64_t t) {
    return reinterpret_cast<Scale*>(p->data + codes()) + c.n_kv * c.D +
           (head * kPage + t) * groups();
  }

  int code_at(const Page* p, std::int64_t at) const {
    if (c.quant == 8) return p->data[at];
    return (p->data[at / 2] >> (at % 2 * 4)) & 15;
  }
  void set_code(Page* p, std::int64_t at, int code) const {
    if (c.quant == 8) {
      p->data[at] = static_cast<unsigned char>(code);
    } else {
      const int shift = static_cast<int>(at % 2 * 4);
      p->data[at / 2] =
          static_cast<unsigned char>((p->data[at / 2] & (0xf0 >> shift)) | code << shift);
    }
  }

  std::int64_t key_at(std::int64_t head, std::int64_t t) const { return (head * kPage + t) * c.D; }
  std::int64_t value_at(std::int64_t head, std::int64_t t) const {
    return keys() + (head * kPage + t) * c.Dv;
  }

  float raw(const Page* p, std::int64_t at) const {
    if (c.dtype == ASSAY_BF16) return widen(reinterpret_cast<const std::uint16_t*>(p->data)[at]);
    return reinterpret_cast<const float*>(p->data)[at];
  }

  void load_key(Page* p, std::int64_t head, std::int64_t t, float* out) {
    const std::int64_t at = key_at(head, t);
    for (std::int64_t d = 0; d < c.D; ++d) {
      out[d] = p->packed ? decode(code_at(p, at + d), key_scale(p, head)[d]) : raw(p, at + d);
    }
  }

  void load_value(Page* p, std::int64_t head, std::int64_t t, float* out) {
    const std::int64_t at = value_at(head, t);
    for (std::int64_t d = 0; d < c.Dv; ++d) {
      out[d] = p->packed ? decode(code_at(p, at + d), value_scale(p, head, t)[d / kGroup])
                         : raw(p, at + d);
    }
  }

  // --- packing ---

  void pack_keys(Page* from, Page* to, std::int64_t head) {
    const int levels = (1 << c.quant) - 1;
    for (std::int64_t d = 0; d < c.D; ++d) {
      float low = std::numeric_limits<float>::infinity(), high = -low;
      for (std::int64_t t = 0; t < kPage; ++t) {
        low = std::min(low, raw(from, key_at(head, t) + d));
        high = std::max(high, raw(from, key_at(head, t) + d));
      }
      const Scale s = key_scale(to, head)[d] = scale_of(low, high, levels);
      for (std::int64_t t = 0; t < kPage; ++t) {
        set_code(to, key_at(head, t) + d, encode(raw(from, key_at(head, t) + d), s, levels));
      }
    }
  }

  void pack_value(Page* from, Page* to, std::int64_t head, std::int64_t t) {
    const int levels = (1 << c.quant) - 1;
    const std::int64_t at = value_at(head, t);
    for (std::int64_t begin = 0; begin < c.Dv; begin += kGroup) {
      const std::int64_t end = std::min<std::int64_t>(begin + kGroup, c.Dv);
      float low = std::numeric_limits<float>::infinity(), high = -low;
      for (std::int64_t d = begin; d < end; ++d) {
        low = std::min(low, raw(from, at + d));
        high = std::max(high, raw(from, at + d));
      }
      const Scale s = value_scale(to, head, t)[begin / kGroup] = scale_of(low, high, levels);
      for (std::int64_t d = begin; d < end; ++d)
        set_code(to, at + d, encode(raw(from, at + d), s, levels));
    }
  }

  Page* packed_copy(Page* page) {
    Page* out = new_page(true);
    std::memset(out->data, 0, static_cast<std::size_t>(codes()));
    for (std::int64_t head = 0; head < c.n_kv; ++head) {
      pack_keys(page, out, head);
      for (std::int64_t t = 0; t < kPage; ++t) pack_value(page, out, head, t);
    }
    return out;
  }

  void set_raw(Page* p, std::int64_t at, float x) const {
    if (c.dtype == ASSAY_BF16) {
      reinterpret_cast<std::uint16_t*>(p->data)[at] = narrow(x);
    } else {
      reinterpret_cast<float*>(p->data)[at] = x;
    }
  }

  // A page of its own with the first n tokens of another, as raw elements.
  Page* raw_copy(Page* page, std::int64_t n) {
    Page* out = new_page(false);
    if (!page->packed) {
      std::memcpy(out->data, page->data, static_cast<std::size_t>(page_bytes(false)));
      return out;
    }
    std::vector<float> row(static_cast<std::size_t>(std::max(c.D, c.Dv)));
    for (std::int64_t head = 0; head < c.n_kv; ++head) {
      for (std::int64_t t = 0; t < n; ++t) {
        load_key(page, head, t, row.data());
        for (std::int64_t d = 0; d < c.D; ++d) set_raw(out, key_at(head, t) + d, row[d]);
        load_value(page, head, t, row.data());
        for (std::int64_t d = 0; d < c.Dv; ++d) set_raw(out, value_at(head, t) + d, row[d]);
      }
    }
    return out;
  }

  // --- sequences ---

  bool known(std::int32_t slot) const {
    return slot >= 0 && slot < c.max_seqs && sequences[static_cast<std::size_t>(slot)].alive;
  }
  Sequence& sequence(std::int32_t slot) { return sequences[static_cast<std::size_t>(slot)]; }

  int free_slot(std::int32_t* slot) const {
    for (std::int32_t s = 0; s < c.max_seqs; ++s) {
      if (known(s)) continue;
      *slot = s;
      return ASSAY_OK;
    }
    return ASSAY_ECAP;
  }

  std::int64_t tokens(std::size_t layer) const {
    std::int64_t sum = 0;
    for (const Sequence& s : sequences) sum += s.alive ? s.layers[layer].length : 0;
    return sum;
  }

  void truncate(Layer& layer, std::int64_t length) {
    if (layer.length <= length) return;
    layer.length = length;
    const auto pages = static_cast<std::size_t>((length + kPage - 1) / kPage);
    while (layer.pages.size() > pages) {
      drop(layer.pages.back());
      layer.pages.pop_back();
    }
  }

  void clear(Sequence& s) {
    for (Layer& layer : s.layers) truncate(layer, 0);
    s = {};
  }

  // The page that the next token goes to, held by this sequence alone and not packed.
  Page* tail(Layer& layer) {
    const std::int64_t used = layer.length % kPage;
    if (used == 0) {
      layer.pages.push_back(new_page(false));
    } else if (layer.pages.back()->holders > 1 || layer.pages.back()->packed) {
      Page* copy = raw_copy(layer.pages.back(), used);
      drop(layer.pages.back());
      layer.pages.back() = copy;
    }
    return layer.pages.back();
  }

  void append_token(Layer& layer, const unsigned char* k, const unsigned char* v) {
    Page* page = tail(layer);
    const std::int64_t t = layer.length % kPage;
    for (std::int64_t head = 0; head < c.n_kv; ++head) {
      std::memcpy(page->data + key_at(head, t) * element, k + head * c.D * element,
                  static_cast<std::size_t>(c.D * element));
      std::memcpy(page->data + value_at(head, t) * element, v + head * c.Dv * element,
                  static_cast<std::size_t>(c.Dv * element));
    }
    ++layer.length;
    if (c.quant != 0 && layer.length % kPage == 0) {
      layer.pages.back() = packed_copy(page);
      drop(page);
    }
  }

  // Pages that no row can see any more, given the length before the latest append.
  void release_old(Layer& layer, std::int64_t length_before) {
    if (c.window < 0) return;
    const std::int64_t first = length_before - c.window - KVC_ROLLBACK;
    for (std::int64_t i = (c.sinks + kPage - 1) / kPage; (i + 1) * kPage <= first; ++i) {
      Page*& page = layer.pages[static_cast<std::size_t>(i)];
      drop(page);
      page = nullptr;
    }
  }

  void append(Layer& layer, std::int64_t n, const unsigned char* k, const unsigned char* v) {
    const std::int64_t before = layer.length;
    release_old(layer, before);
    for (std::int64_t i = 0; i < n; ++i) {
      append_token(layer, k + i * c.n_kv * c.D * element, v + i * c.n_kv * c.Dv * element);
    }
  }

  // --- attention ---

  void put(void* o, std::int64_t at, float x) const {
    if (c.dtype == ASSAY_BF16) {
      static_cast<std::uint16_t*>(o)[at] = narrow(x);
    } else {
      static_cast<float*>(o)[at] = x;
    }
  }

  // One query head of one row on the first `keys` keys; p has room for a weight for each.
  template <class R, class Sees>
  void attend(Layer& layer, std::int64_t keys, const Sees& sees, std::int64_t head, const float* q,
              float scale, float* p, void* o, std::int64_t o_at, float* lse) {
    std::vector<float> row(static_cast<std::size_t>(std::max(c.D, c.Dv))),
        sum_v(static_cast<std::size_t>(c.Dv));
    float max = -std::numeric_limits<float>::infinity();
    for (std::int64_t j = 0; j < keys; ++j) {
      if (!sees(j)) continue;
      load_key(layer.pages[static_cast<std::size_t>(j / kPage)], head, j % kPage, row.data());
      float dot = 0;
      for (std::int64_t d = 0; d < c.D; ++d) dot += q[d] * row[static_cast<std::size_t>(d)];
      p[j] = dot * scale;
      max = std::max(max, p[j]);
    }
    const float base = R::subtracted(max);
    double sum = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      if (!sees(j)) continue;
      const float weight = std::exp(p[j] - base);
      sum += static_cast<double>(weight);
      load_value(layer.pages[static_cast<std::size_t>(j / kPage)], head, j % kPage, row.data());
      for (std::size_t d = 0; d < sum_v.size(); ++d) sum_v[d] += weight * row[d];
    }
    for (std::size_t d = 0; d < sum_v.size(); ++d) {
      put(o, o_at + static_cast<std::int64_t>(d),
          sum > 0 ? sum_v[d] / static_cast<float>(sum) : 0.0f);
    }
    if (lse != nullptr) *lse = base + static_cast<float>(std::log(sum));
  }
};

namespace {

bool valid(const kvc_config& c) {
  return c.size == sizeof(kvc_config) && (c.dtype == ASSAY_F32 || c.dtype == ASSAY_BF16) &&
         c.n_layers >= 1 && c.n_q >= 1 && c.n_kv >= 1 && c.n_q % c.n_kv == 0 && c.D >= 1 &&
         c.Dv >= 0 && c.max_seqs >= 0 && c.max_tokens >= 0 && c.max_len >= 0 && c.sinks >= 0 &&
         (c.window == -1 || c.window > 0) && (c.quant == 0 || c.quant == 4 || c.quant == 8);
}

int check_batch(const kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                const std::int64_t* cu) {
  if (cache == nullptr || layer < 0 || layer >= cache->c.n_layers || n < 0) return ASSAY_EINVAL;
  if (n == 0) return ASSAY_OK;
  if (slots == nullptr || cu == nullptr || cu[0] != 0) return ASSAY_EINVAL;
  std::vector<bool> seen(static_cast<std::size_t>(cache->c.max_seqs));
  for (std::int32_t b = 0; b < n; ++b) {
    if (!cache->known(slots[b])) return ASSAY_ESTATE;
    if (cu[b + 1] < cu[b] || seen[static_cast<std::size_t>(slots[b])]) return ASSAY_EINVAL;
    seen[static_cast<std::size_t>(slots[b])] = true;
  }
  return ASSAY_OK;
}

// Which keys a node of a tree sees.
template <class R>
auto in_tree(const kvc_config& c, std::int64_t prefix, const std::int32_t* parent,
             std::int64_t row) {
  const std::int64_t position = R::position_of_node(parent, prefix, row);
  return [&c, prefix, parent, row, position](std::int64_t key) {
    const std::int64_t node = key - prefix;
    if (node < 0) return R::visible(c, key, position);
    return R::is_ancestor_or_self(parent, node, row) &&
           R::visible(c, R::position_of_node(parent, prefix, node), position);
  };
}

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
  for (std::int32_t b = 0; b < n; ++b) {
    Layer& history = cache->sequence(slots[b]).layers[static_cast<std::size_t>(layer)];
    const std::int64_t rows = cu[b + 1] - cu[b], length = history.length;
    const auto bytes = static_cast<std::size_t>(length + 1) * sizeof(float);
    auto* p = static_cast<float*>(cache->ctx->alloc(cache->ctx, bytes, 64, 0));
    if (p == nullptr) return ASSAY_ENOMEM;
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
    cache->ctx->free(cache->ctx, p);
  }
  return ASSAY_OK;
}

}  // namespace

extern "C" {

int kvc_create(assay_ctx* ctx, const kvc_config* config, kvc** out) {
  if (ctx == nullptr || config == nullptr || out == nullptr || !valid(*config)) return ASSAY_EINVAL;
  kvc* cache = new kvc{ctx, *config, config->dtype == ASSAY_BF16 ? 2 : 4, {}};
  if (cache->c.Dv == 0) cache->c.Dv = cache->c.D;
  cache->sequences.resize(static_cast<std::size_t>(config->max_seqs));
  *out = cache;
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
  std::vector<std::int64_t> before;
  for (std::int32_t b = 0; b < n; ++b) before.push_back(cache->sequence(slots[b]).layers[l].length);
  try {
    for (std::int32_t b = 0; b < n; ++b) {
      cache->append(cache->sequence(slots[b]).layers[l], cu[b + 1] - cu[b],
                    static_cast<const unsigned char*>(k) + cu[b] * c.n_kv * c.D * cache->element,
                    static_cast<const unsigned char*>(v) + cu[b] * c.n_kv * c.Dv * cache->element);
    }
  } catch (const std::bad_alloc&) {
    for (std::int32_t b = 0; b < n; ++b) {
      cache->truncate(cache->sequence(slots[b]).layers[l], before[static_cast<std::size_t>(b)]);
    }
    return ASSAY_ENOMEM;
  }
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
