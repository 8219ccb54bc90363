// Where keys and values stay: pages of 32 tokens of one layer, which forks share until one of
// them writes.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#include "abi.h"
#include "packing.h"
#include "shared/baselines/threads.h"
#include "vectors.h"

namespace {

constexpr std::int64_t kPage = 32;   // tokens
constexpr std::int64_t kGroup = 32;  // elements of a packed value that share a scale

// Stands at the start of its block; the elements follow.
struct Page {
  std::int32_t holders;
  bool packed;
};
constexpr std::int64_t kHeader = 64;
static_assert(sizeof(Page) <= kHeader);

unsigned char* data_of(Page* p) { return reinterpret_cast<unsigned char*>(p) + kHeader; }

struct Layer {
  std::int64_t length = 0;
  std::vector<Page*> pages;  // NULL: out of every window
};

struct Sequence {
  bool alive = false;
  std::vector<Layer> layers;
};

// Rows to copy to a page, where token `at` and those after it go.
struct Copy {
  Page* page;
  std::int64_t at, n;
  const unsigned char *k, *v;
};
constexpr std::int64_t kSerialCopy = 1 << 21;  // bytes that are not worth another thread

// The sequences of a cache and the pages that they hold. What needs a page throws std::bad_alloc.
struct Storage {
  assay_ctx* ctx;
  kvc_config c;
  std::int64_t element;  // bytes
  std::vector<Sequence> sequences;
  std::vector<std::int64_t> tokens;  // of each layer, over all sequences
  std::int64_t live = 0, reserved = 0;

  // Raw: for each key head keys [kPage, D], values [kPage, Dv]. Packed: the codes in the same
  // order, then for each key head scales of the channels [D] and of the values [kPage, groups].
  std::int64_t head_elements() const { return kPage * (c.D + c.Dv); }
  std::int64_t groups() const { return (c.Dv + kGroup - 1) / kGroup; }
  std::int64_t codes() const { return c.n_kv * head_elements() * c.quant / 8; }
  std::int64_t head_scales() const { return c.D + kPage * groups(); }
  std::int64_t page_bytes(bool packed) const {
    if (!packed) return c.n_kv * head_elements() * element;
    return codes() + static_cast<std::int64_t>(sizeof(Scale)) * c.n_kv * head_scales();
  }

  Page* new_page(bool packed) {
    const std::int64_t bytes = page_bytes(packed);
    void* p = ctx->alloc(ctx, static_cast<std::size_t>(kHeader + bytes), 64, 0);
    if (p == nullptr) throw std::bad_alloc();
    live += bytes;
    reserved += kHeader + bytes;
    return new (p) Page{1, packed};
  }

  void drop(Page* page) {
    if (page == nullptr || --page->holders > 0) return;
    live -= page_bytes(page->packed);
    reserved -= kHeader + page_bytes(page->packed);
    ctx->free(ctx, page);
  }

  Scale* key_scales(Page* p, std::int64_t head) const {
    return reinterpret_cast<Scale*>(data_of(p) + codes()) + head * head_scales();
  }
  Scale* value_scales(Page* p, std::int64_t head) const { return key_scales(p, head) + c.D; }

  std::int64_t key_at(std::int64_t head) const { return head * head_elements(); }
  std::int64_t value_at(std::int64_t head) const { return key_at(head) + kPage * c.D; }

  // n rows of `width` raw elements, widened to rows of `stride` floats with zeros behind.
  void widen_rows(const unsigned char* from, std::int64_t n, std::int64_t width, float* to,
                  std::int64_t stride) const {
    for (std::int64_t t = 0; t < n; ++t, to += stride) {
      if (c.dtype == ASSAY_BF16) {
        const auto* row = reinterpret_cast<const std::uint16_t*>(from) + t * width;
        for (std::int64_t d = 0; d < width; ++d) to[d] = widen(row[d]);
      } else {
        std::memcpy(to, from + t * width * 4, static_cast<std::size_t>(width) * 4);
      }
      std::fill(to + width, to + stride, 0.0f);
    }
  }

  // The codes of a row, and where they begin: 4-bit rows of odd width share bytes.
  void unpack(const unsigned char* codes_begin, std::int64_t at, std::int64_t n, float* to) const {
    if (c.quant == 8) {
      for (std::int64_t i = 0; i < n; ++i) to[i] = codes_begin[at + i];
    } else {
      for (std::int64_t i = 0; i < n; ++i) {
        to[i] = static_cast<float>((codes_begin[(at + i) / 2] >> ((at + i) % 2 * 4)) & 15);
      }
    }
  }

  void load_keys(Page* p, std::int64_t head, std::int64_t n, float* to, std::int64_t stride) const {
    if (!p->packed) {
      return widen_rows(data_of(p) + key_at(head) * element, n, c.D, to, stride);
    }
    const Scale* s = key_scales(p, head);
    for (std::int64_t t = 0; t < n; ++t, to += stride) {
      unpack(data_of(p), key_at(head) + t * c.D, c.D, to);
      for (std::int64_t d = 0; d < c.D; ++d) to[d] = to[d] * widen(s[d].step) + widen(s[d].low);
      std::fill(to + c.D, to + stride, 0.0f);
    }
  }

  void load_values(Page* p, std::int64_t head, std::int64_t n, float* to,
                   std::int64_t stride) const {
    if (!p->packed) {
      return widen_rows(data_of(p) + value_at(head) * element, n, c.Dv, to, stride);
    }
    const Scale* s = value_scales(p, head);
    for (std::int64_t t = 0; t < n; ++t, to += stride, s += groups()) {
      unpack(data_of(p), value_at(head) + t * c.Dv, c.Dv, to);
      for (std::int64_t g = 0; g < groups(); ++g) {
        const float step = widen(s[g].step), low = widen(s[g].low);
        const std::int64_t end = std::min<std::int64_t>((g + 1) * kGroup, c.Dv);
        for (std::int64_t d = g * kGroup; d < end; ++d) to[d] = to[d] * step + low;
      }
      std::fill(to + c.Dv, to + stride, 0.0f);
    }
  }

  // --- packing ---

  void pack_row(unsigned char* to, std::int64_t at, const int* row, std::int64_t n) const {
    for (std::int64_t i = 0; i < n; ++i) {
      if (c.quant == 8) {
        to[at + i] = static_cast<unsigned char>(row[i]);
      } else if ((at + i) % 2 == 0) {
        to[(at + i) / 2] = static_cast<unsigned char>(row[i]);
      } else {
        to[(at + i) / 2] = static_cast<unsigned char>(to[(at + i) / 2] | row[i] << 4);
      }
    }
  }

  void pack_keys(const float* rows, Page* to, std::int64_t head) const {
    const int levels = (1 << c.quant) - 1;
    const auto D = static_cast<std::size_t>(c.D);
    std::vector<float> low(D, kInf), high(D, -kInf);
    for (std::int64_t t = 0; t < kPage; ++t) {
      for (std::size_t d = 0; d < D; ++d) {
        low[d] = std::min(low[d], rows[static_cast<std::size_t>(t) * D + d]);
        high[d] = std::max(high[d], rows[static_cast<std::size_t>(t) * D + d]);
      }
    }
    std::vector<Coder> coders;
    for (std::size_t d = 0; d < D; ++d) {
      key_scales(to, head)[d] = scale_of(low[d], high[d], static_cast<float>(levels));
      coders.emplace_back(key_scales(to, head)[d]);
    }
    std::vector<int> row(D);
    for (std::int64_t t = 0; t < kPage; ++t) {
      for (std::size_t d = 0; d < D; ++d)
        row[d] = coders[d](rows[static_cast<std::size_t>(t) * D + d], levels);
      pack_row(data_of(to), key_at(head) + t * c.D, row.data(), c.D);
    }
  }

  void pack_values(const float* rows, Page* to, std::int64_t head) const {
    const int levels = (1 << c.quant) - 1;
    std::vector<int> row(static_cast<std::size_t>(c.Dv));
    Scale* s = value_scales(to, head);
    for (std::int64_t t = 0; t < kPage; ++t, rows += c.Dv) {
      for (std::int64_t begin = 0; begin < c.Dv; begin += kGroup, ++s) {
        const std::int64_t end = std::min<std::int64_t>(begin + kGroup, c.Dv);
        const auto [low, high] = std::minmax_element(rows + begin, rows + end);
        *s = scale_of(*low, *high, static_cast<float>(levels));
        const Coder coder(*s);
        for (std::int64_t d = begin; d < end; ++d)
          row[static_cast<std::size_t>(d)] = coder(rows[d], levels);
      }
      pack_row(data_of(to), value_at(head) + t * c.Dv, row.data(), c.Dv);
    }
  }

  Page* packed_copy(Page* page) {
    Page* out = new_page(true);
    std::vector<float> rows(static_cast<std::size_t>(kPage * std::max(c.D, c.Dv)));
    for (std::int64_t head = 0; head < c.n_kv; ++head) {
      load_keys(page, head, kPage, rows.data(), c.D);
      pack_keys(rows.data(), out, head);
      load_values(page, head, kPage, rows.data(), c.Dv);
      pack_values(rows.data(), out, head);
    }
    return out;
  }

  void narrow_rows(const float* from, std::int64_t n, unsigned char* to) const {
    if (c.dtype != ASSAY_BF16) {
      std::memcpy(to, from, static_cast<std::size_t>(n) * 4);
      return;
    }
    auto* out = reinterpret_cast<std::uint16_t*>(to);
    for (std::int64_t i = 0; i < n; ++i) out[i] = narrow(from[i]);
  }

  // A page of its own with the first n tokens of another, as raw elements.
  Page* raw_copy(Page* page, std::int64_t n) {
    Page* out = new_page(false);
    std::vector<float> rows(static_cast<std::size_t>(kPage * std::max(c.D, c.Dv)));
    for (std::int64_t head = 0; head < c.n_kv; ++head) {
      unsigned char *k = data_of(out) + key_at(head) * element,
                    *v = data_of(out) + value_at(head) * element;
      if (page->packed) {
        load_keys(page, head, n, rows.data(), c.D);
        narrow_rows(rows.data(), n * c.D, k);
        load_values(page, head, n, rows.data(), c.Dv);
        narrow_rows(rows.data(), n * c.Dv, v);
      } else {
        std::memcpy(k, data_of(page) + key_at(head) * element,
                    static_cast<std::size_t>(n * c.D * element));
        std::memcpy(v, data_of(page) + value_at(head) * element,
                    static_cast<std::size_t>(n * c.Dv * element));
      }
    }
    return out;
  }

  // --- sequences ---

  bool known(std::int32_t slot) const {
    return slot >= 0 && slot < c.max_seqs && sequences[static_cast<std::size_t>(slot)].alive;
  }
  Sequence& sequence(std::int32_t slot) { return sequences[static_cast<std::size_t>(slot)]; }
  Layer& layer_of(std::int32_t slot, std::int32_t layer) {
    return sequence(slot).layers[static_cast<std::size_t>(layer)];
  }

  int free_slot(std::int32_t* slot) const {
    for (std::int32_t s = 0; s < c.max_seqs; ++s) {
      if (known(s)) continue;
      *slot = s;
      return ASSAY_OK;
    }
    return ASSAY_ECAP;
  }

  void truncate(std::int32_t slot, std::int32_t l, std::int64_t length) {
    Layer& layer = layer_of(slot, l);
    if (layer.length <= length) return;
    tokens[static_cast<std::size_t>(l)] -= layer.length - length;
    layer.length = length;
    const auto pages = static_cast<std::size_t>((length + kPage - 1) / kPage);
    while (layer.pages.size() > pages) {
      drop(layer.pages.back());
      layer.pages.pop_back();
    }
  }

  void clear(std::int32_t slot) {
    for (std::int32_t l = 0; l < c.n_layers; ++l) truncate(slot, l, 0);
    sequence(slot) = {};
  }

  void copy(const Copy& job) const {
    const auto k_row = static_cast<std::size_t>(c.D * element),
               v_row = static_cast<std::size_t>(c.Dv * element);
    for (std::int64_t head = 0; head < c.n_kv; ++head) {
      unsigned char* keys = data_of(job.page) + (key_at(head) + job.at * c.D) * element;
      unsigned char* values = data_of(job.page) + (value_at(head) + job.at * c.Dv) * element;
      for (std::int64_t t = 0; t < job.n; ++t) {
        const auto to = static_cast<std::size_t>(t),
                   from = static_cast<std::size_t>(t * c.n_kv + head);
        std::memcpy(keys + to * k_row, job.k + from * k_row, k_row);
        std::memcpy(values + to * v_row, job.v + from * v_row, v_row);
      }
    }
  }

  void copy_all(const std::vector<Copy>& copies) const {
    const std::int64_t bytes = std::ssize(copies) * page_bytes(false);
    const int threads = bytes < kSerialCopy ? 1 : std::max(1, ctx->nthreads);
    std::atomic<std::size_t> next{0};
    on_threads(threads, [&](int) {
      for (std::size_t i; (i = next.fetch_add(1)) < copies.size();) copy(copies[i]);
    });
  }

  // What an append makes of a layer. Its pages stand in for those of the layer from `kept` on. The
  // layer stays as it is until there was memory for all of them, in every layer of the batch.
  struct Growth {
    Layer& layer;
    std::int64_t length;
    std::size_t kept;
    std::vector<Page*> pages{};
  };

  Growth grow(std::int32_t slot, std::int32_t l) {
    Layer& layer = layer_of(slot, l);
    return {layer, layer.length, layer.pages.size()};
  }

  void replace_last(Growth& g, Page* page) {
    if (g.pages.empty()) {
      --g.kept;
    } else {
      drop(g.pages.back());
      g.pages.pop_back();
    }
    g.pages.push_back(page);
  }

  // The page that the next token goes to, held by this sequence alone and raw.
  Page* tail(Growth& g) {
    Layer& layer = g.layer;
    const std::int64_t used = g.length % kPage;
    if (used == 0) {
      g.pages.push_back(new_page(false));
    } else if (!g.pages.empty()) {
      return g.pages.back();
    } else if (layer.pages.back()->holders > 1 || layer.pages.back()->packed) {
      replace_last(g, raw_copy(layer.pages.back(), used));
    } else {
      return layer.pages.back();
    }
    return g.pages.back();
  }

  // Makes room for n tokens. What is to be copied there is added to `copies`, or, for a page that
  // is to be packed, done at once.
  void append(Growth& g, std::int64_t n, const unsigned char* k, const unsigned char* v,
              std::vector<Copy>& copies) {
    const auto k_row = static_cast<std::size_t>(c.D * element),
               v_row = static_cast<std::size_t>(c.Dv * element);
    while (n > 0) {
      Page* page = tail(g);
      const std::int64_t used = g.length % kPage, count = std::min(n, kPage - used);
      copies.push_back({page, used, count, k, v});
      g.length += count;
      n -= count;
      k += static_cast<std::size_t>(count * c.n_kv) * k_row;
      v += static_cast<std::size_t>(count * c.n_kv) * v_row;
      if (c.quant != 0) {
        copy(copies.back());
        copies.pop_back();
        if (g.length % kPage == 0) replace_last(g, packed_copy(page));
      }
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

  void commit(const Growth& g, std::int32_t l) {
    Layer& layer = g.layer;
    const std::int64_t length_before = layer.length;
    tokens[static_cast<std::size_t>(l)] += g.length - layer.length;
    layer.length = g.length;
    for (std::size_t i = g.kept; i < layer.pages.size(); ++i) drop(layer.pages[i]);
    layer.pages.resize(g.kept);
    layer.pages.insert(layer.pages.end(), g.pages.begin(), g.pages.end());
    release_old(layer, length_before);
  }

  void abandon(const Growth& g) {
    for (Page* page : g.pages) drop(page);
  }
};

}  // namespace
