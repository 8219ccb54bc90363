// Pages of 32 tokens of one layer, which sequences share until one of them writes, and attention
// over them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

#include "abi.h"
#include "packing.h"

namespace {

constexpr std::int64_t kPage = 32;   // tokens, and the tokens that share a scale of a key's channel
constexpr std::int64_t kGroup = 32;  // elements of a value that share a scale

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

// The sequences of a cache and the pages that they hold. What needs a page throws std::bad_alloc.
struct Cache {
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

  // What an append makes of a layer. Its pages stand in for those of the layer from `kept` on. The
  // layer stays as it is until there was memory for all of them, in every layer of the batch.
  struct Growth {
    Layer& layer;
    std::int64_t length;
    std::size_t kept;
    std::vector<Page*> pages{};
  };

  Growth grow(Layer& layer) const { return {layer, layer.length, layer.pages.size()}; }

  void replace_last(Growth& g, Page* page) {
    if (g.pages.empty()) {
      --g.kept;
    } else {
      drop(g.pages.back());
      g.pages.pop_back();
    }
    g.pages.push_back(page);
  }

  // The page that the next token goes to, held by this sequence alone and not packed.
  Page* tail(Growth& g) {
    const std::int64_t used = g.length % kPage;
    if (used == 0) {
      g.pages.push_back(new_page(false));
    } else if (g.pages.empty()) {
      Page* last = g.layer.pages.back();
      if (last->holders == 1 && !last->packed) return last;
      replace_last(g, raw_copy(last, used));
    }
    return g.pages.back();
  }

  void append_token(Growth& g, const unsigned char* k, const unsigned char* v) {
    Page* page = tail(g);
    const std::int64_t t = g.length % kPage;
    for (std::int64_t head = 0; head < c.n_kv; ++head) {
      std::memcpy(page->data + key_at(head, t) * element, k + head * c.D * element,
                  static_cast<std::size_t>(c.D * element));
      std::memcpy(page->data + value_at(head, t) * element, v + head * c.Dv * element,
                  static_cast<std::size_t>(c.Dv * element));
    }
    ++g.length;
    if (c.quant != 0 && g.length % kPage == 0) replace_last(g, packed_copy(page));
  }

  void append(Growth& g, std::int64_t n, const unsigned char* k, const unsigned char* v) {
    for (std::int64_t i = 0; i < n; ++i) {
      append_token(g, k + i * c.n_kv * c.D * element, v + i * c.n_kv * c.Dv * element);
    }
  }

  // Pages that no row can see any more, given the length before the latest append, once that has
  // succeeded: until then the rows of the one before it may be attended to. A truncation may come
  // first, and the rows of a batch stand further below.
  void release_old(Layer& layer, std::int64_t length_before) {
    if (c.window < 0) return;
    const std::int64_t rows = std::max<std::int64_t>(layer.length - length_before, KVC_ROLLBACK);
    const std::int64_t first = layer.length - KVC_ROLLBACK - rows - c.window;
    for (std::int64_t i = (c.sinks + kPage - 1) / kPage; (i + 1) * kPage <= first; ++i) {
      Page*& page = layer.pages[static_cast<std::size_t>(i)];
      drop(page);
      page = nullptr;
    }
  }

  void commit(const Growth& g) {
    Layer& layer = g.layer;
    const std::int64_t length_before = layer.length;
    for (std::size_t i = g.kept; i < layer.pages.size(); ++i) drop(layer.pages[i]);
    layer.pages.resize(g.kept);
    layer.pages.insert(layer.pages.end(), g.pages.begin(), g.pages.end());
    layer.length = g.length;
    release_old(layer, length_before);
  }

  void abandon(const Growth& g) {
    for (Page* page : g.pages) drop(page);
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

}  // namespace
