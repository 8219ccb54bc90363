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

#ifdef __AVX512F__
constexpr int kLanes = 16;
#else
constexpr int kLanes = 8;
#endif
typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef std::int32_t VecI __attribute__((vector_size(4 * kLanes)));

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr std::int64_t kPage = 32;           // tokens
constexpr std::int64_t kGroup = 32;          // elements of a packed value that share a scale
constexpr std::int64_t kBlock = 2 * kLanes;  // rows of a block where lanes are rows
constexpr std::int64_t kTaskRows = 256;      // most rows of a task
constexpr std::int64_t kTasksPerThread = 16;
constexpr std::int64_t kLeastTiles = 16;  // of a part

Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }
Vec splat(float f) { return f - Vec{}; }
VecI splat_int(std::int32_t i) { return i - VecI{}; }
Vec larger(Vec a, Vec b) { return a > b ? a : b; }

// exp for x <= 0: 2^n times a polynomial on [-ln2/2, ln2/2] (coefficients of Cephes' expf), about 2
// ulp; 0 below -87.
Vec exp_nonpositive(Vec x) {
  const Vec clamped = x > -87.0f ? x : splat(-87.0f);
  const Vec magic = splat(12582912.0f);  // 1.5 * 2^23 rounds to an integer
  const Vec shifted = clamped * 1.44269504f + magic;
  const Vec n = shifted - magic;
  Vec r = clamped - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  Vec y = splat(1.9875691500e-4f);
  y = y * r + 1.3981999507e-3f;
  y = y * r + 8.3334519073e-3f;
  y = y * r + 4.1665795894e-2f;
  y = y * r + 1.6666665459e-1f;
  y = y * r + 5.0000001201e-1f;
  y = y * (r * r) + r + 1.0f;
  VecI exponent;
  std::memcpy(&exponent, &shifted, sizeof exponent);
  exponent = (exponent << 23) + 0x3f800000;
  Vec power;
  std::memcpy(&power, &exponent, sizeof power);
  const Vec result = y * power;
  return x > -87.0f ? result : Vec{};
}

// The lanes of a vector, each with the one `distance` away from it.
template <int distance>
Vec exchanged(Vec v) {
  VecI from{};
  for (int i = 0; i < kLanes; ++i) from[i] = i ^ distance;
  return __builtin_shuffle(v, from);
}

float largest_lane(Vec v) {
#ifdef __AVX512F__
  v = larger(v, exchanged<8>(v));
#endif
  v = larger(v, exchanged<4>(v));
  v = larger(v, exchanged<2>(v));
  return larger(v, exchanged<1>(v))[0];
}

float sum_of_lanes(Vec v) {
#ifdef __AVX512F__
  v += exchanged<8>(v);
#endif
  v += exchanged<4>(v);
  v += exchanged<2>(v);
  return (v + exchanged<1>(v))[0];
}

// Halves the blocks of `width` lanes of two vectors: each block of the result is half as wide, and
// they stand alternately for a and b.
template <int width>
Vec fold(Vec a, Vec b) {
  VecI first{}, second{};
  for (int i = 0; i < kLanes; ++i) {
    const int half = width / 2, block = i / half, from = block / 2 * width + i % half;
    first[i] = from + (block % 2) * kLanes;
    second[i] = first[i] + half;
  }
  return __builtin_shuffle(a, b, first) + __builtin_shuffle(a, b, second);
}

// Lane i of the result is the sum of the lanes of a[i].
Vec transposed_sums(const Vec* a) {
  Vec half[kLanes / 2], quarter[kLanes / 4], eighth[kLanes / 8];
  for (int i = 0; i < kLanes / 2; ++i) half[i] = fold<kLanes>(a[i], a[i + kLanes / 2]);
  for (int i = 0; i < kLanes / 4; ++i) quarter[i] = fold<kLanes / 2>(half[i], half[i + kLanes / 4]);
  for (int i = 0; i < kLanes / 8; ++i)
    eighth[i] = fold<kLanes / 4>(quarter[i], quarter[i + kLanes / 8]);
#ifdef __AVX512F__
  return fold<2>(eighth[0], eighth[1]);
#else
  return eighth[0];
#endif
}

std::int64_t padded(std::int64_t n) { return (n + kLanes - 1) / kLanes * kLanes; }

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

// --- packed pages --------------------------------------------------------------------------------

// A range of values as code * step + low. Both are stored as bfloat16, and codes are made with what
// is stored, so that the rounding of the two costs nothing but a little range.
struct Scale {
  std::uint16_t step, low;
};

Scale scale_of(float low, float high, float levels) {
  std::uint16_t bottom = narrow(low);
  if (widen(bottom) > low) bottom = narrow(low - std::abs(low) / 128);
  return {narrow((high - widen(bottom)) / levels * (1 + 1.0f / 256)), bottom};
}

struct Coder {
  explicit Coder(Scale s) : low(widen(s.low)) {
    const float step = widen(s.step);
    inverse = step > 0 ? 1 / step : 0;
  }
  int operator()(float x, int levels) const {
    return std::clamp(static_cast<int>(std::lrint((x - low) * inverse)), 0, levels);
  }
  float low, inverse;
};

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

// A function on up to `threads` threads, the caller's among them.
template <class F>
void on_threads(int threads, const F& f) {
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back([&f, t] { f(t); });
  f(0);
  for (std::thread& other : others) other.join();
}

}  // namespace

// --- storage -------------------------------------------------------------------------------------

struct kvc {
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

  // The page that the next token goes to, held by this sequence alone and raw.
  Page* tail(Layer& layer) {
    const std::int64_t used = layer.length % kPage;
    if (used == 0) {
      Page* page = new_page(false);
      layer.pages.push_back(page);
    } else if (layer.pages.back()->holders > 1 || layer.pages.back()->packed) {
      Page* copy = raw_copy(layer.pages.back(), used);
      drop(layer.pages.back());
      layer.pages.back() = copy;
    }
    return layer.pages.back();
  }

  // Pages that no row can see any more, given the length before the latest append.
  void release_old(Layer& layer) {
    if (c.window < 0) return;
    const std::int64_t first = layer.length - c.window - KVC_ROLLBACK;
    for (std::int64_t i = (c.sinks + kPage - 1) / kPage; (i + 1) * kPage <= first; ++i) {
      Page*& page = layer.pages[static_cast<std::size_t>(i)];
      drop(page);
      page = nullptr;
    }
  }

  // Makes room for n tokens and counts them; what is to be copied there is added to `copies`, or,
  // for a page that is to be packed, done at once.
  void append(std::int32_t slot, std::int32_t l, std::int64_t n, const unsigned char* k,
              const unsigned char* v, std::vector<Copy>& copies) {
    Layer& layer = layer_of(slot, l);
    release_old(layer);
    const auto k_row = static_cast<std::size_t>(c.D * element),
               v_row = static_cast<std::size_t>(c.Dv * element);
    while (n > 0) {
      Page* page = tail(layer);
      const std::int64_t used = layer.length % kPage, count = std::min(n, kPage - used);
      copies.push_back({page, used, count, k, v});
      layer.length += count;
      tokens[static_cast<std::size_t>(l)] += count;
      n -= count;
      k += static_cast<std::size_t>(count * c.n_kv) * k_row;
      v += static_cast<std::size_t>(count * c.n_kv) * v_row;
      if (c.quant != 0) {
        copy(copies.back());
        copies.pop_back();
      }
      if (c.quant != 0 && layer.length % kPage == 0) {
        layer.pages.back() = packed_copy(page);
        drop(page);
      }
    }
  }
};

namespace {

// --- attention -----------------------------------------------------------------------------------

// Some rows of one entry and one key head on some of its tiles (a page's keys each). Row r is query
// r / group of the entry and head r % group of the key head's group.
struct Task {
  std::int32_t entry, head;
  std::int64_t row, rows;
  std::int64_t sinks;       // tiles [0, sinks) come first,
  std::int64_t skipped;     // then those from sinks + skipped on
  std::int64_t begin, end;  // of that sequence
  std::int64_t length;      // keys that any row sees end here
  float* partial;  // NULL, or room for rows * (Dv + 2): the rows are shared with other tasks
  // NULL, or the entries whose rows these are, one after the other, in place of `entry` alone: they
  // have the pages of these tiles in common, and all rows see all of them.
  const std::vector<std::int32_t>* members = nullptr;
};

struct Job {
  kvc* cache;
  std::int32_t layer;
  const std::int32_t* slots;
  const std::int64_t* cu;
  const void* q;
  float scale;
  void* o;
  float* lse;
  // Of draft trees, else NULL: each row's parent and how many ancestors it has.
  const std::int32_t *parent = nullptr, *depth = nullptr;

  const kvc_config& c() const { return cache->c; }
  std::int64_t group() const { return c().n_q / c().n_kv; }
  const Layer& history(std::int32_t entry) const { return cache->layer_of(slots[entry], layer); }
  std::int64_t rows(std::int32_t entry) const { return (cu[entry + 1] - cu[entry]) * group(); }
  // The tokens before an entry's rows.
  std::int64_t prefix(std::int32_t entry) const {
    return history(entry).length - (cu[entry + 1] - cu[entry]);
  }
  std::int64_t position(const Task& t, std::int64_t row) const {
    if (t.members != nullptr) return t.length - 1;
    const std::int64_t i = (t.row + row) / group();
    return prefix(t.entry) + (parent == nullptr ? i : depth[cu[t.entry] + i]);
  }
  // Bounds of what a row and all that follow it in the task, or that come before it, have in
  // common: these see every key up to `lowest`, those none beyond `highest`, and windows begin
  // between the two. In a tree they are the same for all rows.
  std::int64_t lowest(const Task& t, std::int64_t row) const {
    const bool tree = parent != nullptr && t.members == nullptr;
    return tree ? prefix(t.entry) - 1 : position(t, row);
  }
  std::int64_t highest(const Task& t, std::int64_t row) const {
    const bool tree = parent != nullptr && t.members == nullptr;
    return tree ? history(t.entry).length - 1 : position(t, row);
  }
  bool sees(const Task& t, std::int64_t row, std::int64_t key, std::int64_t position) const {
    if (parent != nullptr && t.members == nullptr && key >= prefix(t.entry)) {
      std::int64_t i = (t.row + row) / group();
      const std::int32_t* mine = parent + cu[t.entry];
      const std::int64_t node = key - prefix(t.entry);
      while (i > node) i = mine[i];
      if (i != node) return false;
      key = prefix(t.entry) + depth[cu[t.entry] + node];
    }
    return key <= position && (c().window < 0 || key > position - c().window || key < c().sinks);
  }
  // Of q and o in rows of heads, and of lse.
  std::int64_t index(const Task& t, std::int64_t row) const {
    std::int64_t r = t.row + row;
    std::int32_t entry = t.entry;
    for (std::size_t i = 0; t.members != nullptr; ++i) {
      entry = (*t.members)[i];
      if (r < rows(entry)) break;
      r -= rows(entry);
    }
    return (cu[entry] + r / group()) * c().n_q + t.head * group() + r % group();
  }

  void load_query(const Task& t, std::int64_t row, float* to) const {
    const std::int64_t at = index(t, row) * c().D;
    for (std::int64_t d = 0; d < c().D; ++d) {
      const float x = c().dtype == ASSAY_BF16 ? widen(static_cast<const std::uint16_t*>(q)[at + d])
                                              : static_cast<const float*>(q)[at + d];
      to[d] = x * scale;
    }
  }

  // sum is relative to max; values are not divided yet.
  void finish(std::int64_t index, float max, float sum, const float* values,
              std::int64_t stride) const {
    const float inverse = sum > 0 ? 1 / sum : 0;
    for (std::int64_t d = 0; d < c().Dv; ++d) {
      const float x = sum > 0 ? values[d * stride] * inverse : 0;
      if (c().dtype == ASSAY_BF16) {
        static_cast<std::uint16_t*>(o)[index * c().Dv + d] = narrow(x);
      } else {
        static_cast<float*>(o)[index * c().Dv + d] = x;
      }
    }
    if (lse != nullptr) lse[index] = sum > 0 ? max + std::log(sum) : -kInf;
  }

  // Hands one row over: to the outputs, or to the merge.
  void deliver(const Task& t, std::int64_t row, float max, float sum, const float* values,
               std::int64_t stride) const {
    if (t.partial == nullptr) return finish(index(t, row), max, sum, values, stride);
    float* p = t.partial + row * (c().Dv + 2);
    p[0] = max;
    p[1] = sum;
    for (std::int64_t d = 0; d < c().Dv; ++d) p[2 + d] = values[d * stride];
  }
};

// A thread's buffers and its way through a task.
class Attention {
 public:
  static std::int64_t floats(const kvc_config& c) {
    const std::int64_t D = padded(c.D), Dv = padded(c.Dv);
    return kTaskRows * (D + Dv + 2) + 2 * kPage * std::max<std::int64_t>(kBlock, kLanes) +
           kPage * (D + Dv);
  }

  Attention(const Job& job, float* room)
      : job_(job), c_(job.c()), D_(padded(c_.D)), Dv_(padded(c_.Dv)) {
    q_ = room;
    o_ = q_ + kTaskRows * D_;
    max_ = o_ + kTaskRows * Dv_;
    sum_ = max_ + kTaskRows;
    scores_ = sum_ + kTaskRows;
    keys_ = scores_ + 2 * kPage * std::max<std::int64_t>(kBlock, kLanes);
    values_ = keys_ + kPage * D_;
  }

  void run(const Task& t) {
    if (t.rows < kLanes) {
      few_rows(t);
    } else {
      many_rows(t);
    }
  }

 private:
  static std::int64_t tile_index(const Task& t, std::int64_t i) {
    return i < t.sinks ? i : i + t.skipped;
  }

  // A tile's keys and values as rows of D_ and Dv_ floats, in place where the page has them so.
  struct Tile {
    std::int64_t first, count;  // keys
    const float *k, *v;
    const char* next;  // what to fetch ahead, or NULL
  };

  bool in_place() const {
    return c_.quant == 0 && c_.dtype == ASSAY_F32 && D_ == c_.D && Dv_ == c_.Dv;
  }

  Tile tile(const Task& t, std::int64_t i) {
    const std::vector<Page*>& pages = job_.history(t.entry).pages;
    const std::int64_t at = tile_index(t, i);
    Page* page = pages[static_cast<std::size_t>(at)];
    Tile tile{at * kPage, std::min(kPage, t.length - at * kPage), keys_, values_, nullptr};
    if (in_place()) {
      const auto* elements = reinterpret_cast<const float*>(data_of(page));
      tile.k = elements + job_.cache->key_at(t.head);
      tile.v = elements + job_.cache->value_at(t.head);
      if (i + 1 < t.end) {
        Page* next = pages[static_cast<std::size_t>(tile_index(t, i + 1))];
        tile.next = reinterpret_cast<const char*>(data_of(next)) + job_.cache->key_at(t.head) * 4;
      }
    } else {
      job_.cache->load_keys(page, t.head, tile.count, keys_, D_);
      job_.cache->load_values(page, t.head, tile.count, values_, Dv_);
    }
    return tile;
  }

  bool all_visible(const Task& t, const Tile& tile) const {
    if (tile.first + kPage - 1 > job_.lowest(t, 0)) return false;
    if (c_.window < 0 || tile.first + kPage <= c_.sinks) return true;
    return tile.first > job_.highest(t, t.rows - 1) - c_.window;
  }

  // --- lanes are elements of a head ---

  void few_rows(const Task& t) {
    std::fill(q_, q_ + t.rows * D_, 0.0f);
    for (std::int64_t r = 0; r < t.rows; ++r) job_.load_query(t, r, q_ + r * D_);
    std::fill(o_, o_ + t.rows * Dv_, 0.0f);
    std::fill(max_, max_ + t.rows, -kInf);
    std::fill(sum_, sum_ + t.rows, 0.0f);
    for (std::int64_t i = t.begin; i < t.end; ++i) {
      const Tile now = tile(t, i);
      const bool all = all_visible(t, now);
      std::int64_t r = 0;
      for (; r + 4 <= t.rows; r += 4) row_group<4>(t, now, all, r);
      for (; r + 2 <= t.rows; r += 2) row_group<2>(t, now, all, r);
      for (; r < t.rows; ++r) row_group<1>(t, now, all, r);
    }
    for (std::int64_t r = 0; r < t.rows; ++r) job_.deliver(t, r, max_[r], sum_[r], o_ + r * Dv_, 1);
  }

  template <int kRows>
  void row_group(const Task& t, const Tile& now, bool all, std::int64_t r) {
    constexpr int kKeys = kLanes / kRows;
    for (std::int64_t j = 0; j < kPage; j += kKeys) {
      if (j < now.count) dots<kRows>(now, r, j);
    }
    float corrections[kRows];
    for (int i = 0; i < kRows; ++i)
      corrections[i] = softmax(t, now, all, r + i, scores_ + i * kPage);
    std::int64_t d = 0;
    for (; d + 4 * kLanes <= Dv_; d += 4 * kLanes) add_values<kRows, 4>(now, corrections, r, d);
    for (; d < Dv_; d += kLanes) add_values<kRows, 1>(now, corrections, r, d);
  }

  // Scores of kRows rows from r on and kLanes / kRows keys from j on; rows behind the last key of
  // the tile hold anything, and so do their scores.
  template <int kRows>
  void dots(const Tile& now, std::int64_t r, std::int64_t j) {
    constexpr int kKeys = kLanes / kRows;
    Vec sums[kLanes] = {};
    const char* ahead = r == 0 ? now.next : nullptr;  // the first rows fetch for all
    for (std::int64_t d = 0; d < D_; d += kLanes) {
      Vec q[kRows];
      for (int i = 0; i < kRows; ++i) q[i] = load(q_ + (r + i) * D_ + d);
#pragma GCC unroll 16
      for (int key = 0; key < kKeys; ++key) {
        if (ahead != nullptr) __builtin_prefetch(ahead + ((j + key) * D_ + d) * 4, 0, 2);
        const Vec k = load(now.k + (j + key) * D_ + d);
#pragma GCC unroll 4
        for (int i = 0; i < kRows; ++i) sums[i * kKeys + key] += q[i] * k;
      }
    }
    alignas(64) float out[kLanes];
    store(out, transposed_sums(sums));
    for (int i = 0; i < kRows; ++i) {
      std::memcpy(scores_ + i * kPage + j, out + i * kKeys, kKeys * sizeof(float));
    }
  }

  // Scores become weights; returns by how much what was summed up before shrinks.
  float softmax(const Task& t, const Tile& now, bool all, std::int64_t row, float* scores) {
    if (!all) {
      const std::int64_t position = job_.position(t, row);
      for (std::int64_t j = 0; j < kPage; ++j) {
        if (j >= now.count || !job_.sees(t, row, now.first + j, position)) scores[j] = -kInf;
      }
    }
    Vec most = load(scores);
    for (std::int64_t j = kLanes; j < kPage; j += kLanes) most = larger(most, load(scores + j));
    const float before = max_[row], max = std::max(before, largest_lane(most));
    const float base = max == -kInf ? 0 : max;
    Vec sum{};
    for (std::int64_t j = 0; j < kPage; j += kLanes) {
      const Vec weight = exp_nonpositive(load(scores + j) - base);
      store(scores + j, weight);
      sum += weight;
    }
    const float correction = max == before ? 1 : exp_nonpositive(splat(before - base))[0];
    max_[row] = max;
    sum_[row] = sum_[row] * correction + sum_of_lanes(sum);
    return correction;
  }

  template <int kRows, int kVecs>
  void add_values(const Tile& now, const float* corrections, std::int64_t r, std::int64_t d) {
    const char* ahead = r == 0 && now.next != nullptr ? now.next + kPage * D_ * 4 : nullptr;
    Vec sums[kRows][kVecs];
    for (int i = 0; i < kRows; ++i) {
      for (int n = 0; n < kVecs; ++n) {
        sums[i][n] = load(o_ + (r + i) * Dv_ + d + n * kLanes) * corrections[i];
      }
    }
    for (std::int64_t j = 0; j < now.count; ++j) {
      Vec v[kVecs];
      for (int n = 0; ahead != nullptr && n < kVecs; ++n) {
        __builtin_prefetch(ahead + (j * Dv_ + d + n * kLanes) * 4, 0, 2);
      }
      for (int n = 0; n < kVecs; ++n) v[n] = load(now.v + j * Dv_ + d + n * kLanes);
      for (int i = 0; i < kRows; ++i) {
        const Vec weight = splat(scores_[i * kPage + j]);
        for (int n = 0; n < kVecs; ++n) sums[i][n] += weight * v[n];
      }
    }
    for (int i = 0; i < kRows; ++i) {
      for (int n = 0; n < kVecs; ++n) store(o_ + (r + i) * Dv_ + d + n * kLanes, sums[i][n]);
    }
  }

  // --- lanes are rows ---

  // Block b of the rows has its queries at q_ + b * kBlock * D_ as [D, kBlock], its sums of values
  // likewise.
  void many_rows(const Task& t) {
    const std::int64_t blocks = (t.rows + kBlock - 1) / kBlock;
    std::fill(q_, q_ + blocks * kBlock * D_, 0.0f);
    for (std::int64_t r = 0; r < t.rows; ++r) {
      job_.load_query(t, r, keys_);
      float* to = q_ + r / kBlock * kBlock * D_ + r % kBlock;
      for (std::int64_t d = 0; d < c_.D; ++d) to[d * kBlock] = keys_[d];
    }
    std::fill(o_, o_ + blocks * kBlock * Dv_, 0.0f);
    std::fill(max_, max_ + blocks * kBlock, -kInf);
    std::fill(sum_, sum_ + blocks * kBlock, 0.0f);
    for (std::int64_t i = t.begin; i < t.end; ++i) {
      const Tile now = tile(t, i);
      for (std::int64_t b = 0; b < blocks; ++b) block(t, now, b);
    }
    for (std::int64_t r = 0; r < t.rows; ++r) {
      job_.deliver(t, r, max_[r], sum_[r], o_ + r / kBlock * kBlock * Dv_ + r % kBlock, kBlock);
    }
  }

  void block(const Task& t, const Tile& now, std::int64_t b) {
    const std::int64_t first = b * kBlock, last = std::min(first + kBlock, t.rows) - 1;
    const std::int64_t low = job_.lowest(t, first), high = job_.highest(t, last);
    if (now.first > high) return;
    if (c_.window > 0 && now.first + now.count - 1 <= low - c_.window && now.first >= c_.sinks)
      return;
    for (std::int64_t j = 0; j < now.count; j += 8) {
      if (j + 8 <= now.count) {
        scores_of<8>(now, b, j);
      } else {
        for (std::int64_t k = j; k < now.count; ++k) scores_of<1>(now, b, k);
      }
    }
    const bool masked =
        now.first + now.count - 1 > low ||
        (c_.window > 0 && now.first <= high - c_.window && now.first + now.count > c_.sinks);
    if (masked) mask(t, now, b);
    Vec corrections[2];
    softmax_block(now, b, corrections);
    for (std::int64_t d = 0; d < Dv_; d += 8) values_of(now, b, d, corrections);
  }

  template <int kKeys>
  void scores_of(const Tile& now, std::int64_t b, std::int64_t j) {
    Vec sums[kKeys][2] = {};
    const float* q = q_ + b * kBlock * D_;
    const float* k = now.k + j * D_;
    for (std::int64_t d = 0; d < c_.D; ++d) {
      const Vec q0 = load(q + d * kBlock), q1 = load(q + d * kBlock + kLanes);
#pragma GCC unroll 8
      for (int key = 0; key < kKeys; ++key) {
        const Vec x = splat(k[key * D_ + d]);
        sums[key][0] += x * q0;
        sums[key][1] += x * q1;
      }
    }
    for (int key = 0; key < kKeys; ++key) {
      store(scores_ + (j + key) * kBlock, sums[key][0]);
      store(scores_ + (j + key) * kBlock + kLanes, sums[key][1]);
    }
  }

  void mask(const Task& t, const Tile& now, std::int64_t b) {
    for (std::int64_t r = 0; r < kBlock; ++r) {
      const std::int64_t row = std::min(b * kBlock + r, t.rows - 1),
                         position = job_.position(t, row);
      for (std::int64_t j = 0; j < now.count; ++j) {
        if (!job_.sees(t, row, now.first + j, position)) scores_[j * kBlock + r] = -kInf;
      }
    }
  }

  void softmax_block(const Tile& now, std::int64_t b, Vec* corrections) {
    for (int half = 0; half < 2; ++half) {
      float* scores = scores_ + half * kLanes;
      const std::int64_t at = b * kBlock + half * kLanes;
      const Vec before = load(max_ + at);
      Vec max = before;
      for (std::int64_t j = 0; j < now.count; ++j) max = larger(max, load(scores + j * kBlock));
      const Vec base = max == -kInf ? Vec{} : max;
      Vec sum{};
      for (std::int64_t j = 0; j < now.count; ++j) {
        const Vec weight = exp_nonpositive(load(scores + j * kBlock) - base);
        store(scores + j * kBlock, weight);
        sum += weight;
      }
      corrections[half] = exp_nonpositive(before - base);
      store(max_ + at, max);
      store(sum_ + at, load(sum_ + at) * corrections[half] + sum);
    }
  }

  void values_of(const Tile& now, std::int64_t b, std::int64_t d, const Vec* corrections) {
    float* o = o_ + (b * Dv_ + d) * kBlock;
    Vec sums[8][2];
    for (int i = 0; i < 8; ++i) {
      sums[i][0] = load(o + i * kBlock) * corrections[0];
      sums[i][1] = load(o + i * kBlock + kLanes) * corrections[1];
    }
    for (std::int64_t j = 0; j < now.count; ++j) {
      const Vec w0 = load(scores_ + j * kBlock), w1 = load(scores_ + j * kBlock + kLanes);
      const float* v = now.v + j * Dv_ + d;
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) {
        const Vec x = splat(v[i]);
        sums[i][0] += x * w0;
        sums[i][1] += x * w1;
      }
    }
    for (int i = 0; i < 8; ++i) {
      store(o + i * kBlock, sums[i][0]);
      store(o + i * kBlock + kLanes, sums[i][1]);
    }
  }

  const Job& job_;
  const kvc_config& c_;
  std::int64_t D_, Dv_;
  float *q_, *o_, *max_, *sum_, *scores_, *keys_, *values_;
};

// --- plan ----------------------------------------------------------------------------------------

// Rows whose parts are to be merged: of tasks of their own, and of tasks for a prefix that they
// share with others, among whose rows they begin at shared_row.
struct Merge {
  std::size_t first_task, tasks, first_shared = 0, shared_tasks = 0;
  std::int64_t shared_row = 0;
};

// Entries whose histories begin with the same pages, as forks have them.
struct Family {
  std::vector<std::int32_t> members;
  std::int64_t tiles = 0;  // in common, and seen by all rows of all members
  std::int64_t rows = 0;   // of a key head
};

struct Plan {
  std::vector<Task> tasks;
  std::vector<Merge> merges;
  std::vector<Family> families;
  std::int64_t partial_floats = 0;
  double work = 0;  // elements of keys times rows
};

// The tiles that some rows see, as one task.
Task whole_task(const Job& job, std::int32_t b, std::int32_t head, std::int64_t row,
                std::int64_t rows) {
  const kvc_config& c = job.c();
  Task t{b, head, row, rows, 0, 0, 0, 0, 0, nullptr};
  const std::int64_t last = job.highest(t, rows - 1), first = job.lowest(t, 0);
  t.length = last + 1;
  if (t.length <= 0) return t;
  const std::int64_t tiles = (t.length + kPage - 1) / kPage;
  const std::int64_t from =
      c.window > 0 ? std::max<std::int64_t>(0, first - c.window + 1) / kPage : 0;
  t.sinks = c.window > 0 ? std::min<std::int64_t>(from, (c.sinks + kPage - 1) / kPage) : 0;
  t.skipped = from - t.sinks;
  t.end = tiles - t.skipped;
  return t;
}

// Adds a task in parts; returns how many. A task in one part needs no merge of its own.
std::size_t split(Plan& plan, const Task& whole, std::int64_t tiles_per_part) {
  const std::int64_t tiles = whole.end - whole.begin;
  const std::int64_t parts =
      std::max<std::int64_t>(1, (tiles + tiles_per_part - 1) / tiles_per_part);
  for (std::int64_t p = 0; p < parts; ++p) {
    Task part = whole;
    part.begin = whole.begin + tiles * p / parts;
    part.end = whole.begin + tiles * (p + 1) / parts;
    plan.tasks.push_back(part);
  }
  return static_cast<std::size_t>(parts);
}

// Full pages that two histories begin with in common.
std::int64_t common_pages(const Layer& a, const Layer& b) {
  const auto most = std::min(a.pages.size(), b.pages.size());
  std::size_t n = 0;
  while (n < most && a.pages[n] == b.pages[n]) ++n;
  return static_cast<std::int64_t>(n);
}

std::vector<Family> find_families(const Job& job, std::int32_t n) {
  std::vector<Family> found;
  if (job.c().window > 0) return found;
  for (std::int32_t b = 0; b < n; ++b) {
    const Layer& mine = job.history(b);
    const std::int64_t rows = job.rows(b);
    // Every row sees the tiles before the first row's position.
    const std::int64_t seen = (job.prefix(b) + (job.parent == nullptr ? 1 : 0)) / kPage;
    if (rows == 0 || seen < kLeastTiles) continue;
    const auto family = std::find_if(found.begin(), found.end(), [&](const Family& f) {
      const std::int64_t common = common_pages(job.history(f.members[0]), mine);
      return f.rows + rows <= kTaskRows && std::min({f.tiles, common, seen}) >= kLeastTiles;
    });
    if (family == found.end()) {
      found.push_back({{b}, seen, rows});
      continue;
    }
    family->tiles =
        std::min({family->tiles, common_pages(job.history(family->members[0]), mine), seen});
    family->members.push_back(b);
    family->rows += rows;
  }
  std::erase_if(found, [](const Family& f) { return f.members.size() < 2; });
  return found;
}

// A plan under construction.
class Planner {
 public:
  Planner(const Job& job, std::int32_t n)
      : job_(job), n_(n), family_of_(static_cast<std::size_t>(n), -1) {
    plan_.families = find_families(job, n);
    for (std::size_t f = 0; f < plan_.families.size(); ++f) {
      for (const std::int32_t b : plan_.families[f].members)
        family_of_[static_cast<std::size_t>(b)] = static_cast<int>(f);
    }
  }

  Plan run() {
    std::vector<Task> shared, own;
    for (const Family& family : plan_.families) {
      for (std::int32_t head = 0; head < job_.c().n_kv; ++head)
        shared.push_back(shared_task(family, head));
    }
    for (std::int32_t b = 0; b < n_; ++b) add_own(own, b);
    std::int64_t tiles = 0;
    for (const auto* tasks : {&shared, &own}) {
      for (const Task& t : *tasks) {
        tiles += t.end - t.begin;
        plan_.work +=
            static_cast<double>((t.end - t.begin) * kPage * t.rows) * (job_.c().D + job_.c().Dv);
      }
    }
    per_part_ =
        std::max(kLeastTiles, tiles / (kTasksPerThread * std::max(1, job_.cache->ctx->nthreads)));
    for (const Task& t : shared) {
      shared_parts_.emplace_back(plan_.tasks.size(), 0);
      shared_parts_.back().second = split(plan_, t, per_part_);
    }
    for (const Task& t : own) place(t);
    return std::move(plan_);
  }

 private:
  // Tasks point at the members, whose vector moves with the plan but stays where it is on the heap.
  Task shared_task(const Family& family, std::int32_t head) const {
    Task t{family.members[0],    head,   0, family.rows, 0, 0, 0, family.tiles,
           family.tiles * kPage, nullptr};
    t.members = &family.members;
    return t;
  }

  const Family* family_of(std::int32_t b) const {
    const int f = family_of_[static_cast<std::size_t>(b)];
    return f < 0 ? nullptr : &plan_.families[static_cast<std::size_t>(f)];
  }

  void add_own(std::vector<Task>& own, std::int32_t b) const {
    const Family* family = family_of(b);
    const std::int64_t rows = job_.rows(b);
    for (std::int32_t head = 0; head < job_.c().n_kv; ++head) {
      for (std::int64_t row = 0; row < rows; row += kTaskRows) {
        own.push_back(whole_task(job_, b, head, row, std::min(kTaskRows, rows - row)));
        if (family != nullptr) own.back().begin = family->tiles;
      }
    }
  }

  void place(const Task& t) {
    Merge merge{plan_.tasks.size(), 0};
    merge.tasks = split(plan_, t, per_part_);
    if (const Family* family = family_of(t.entry); family != nullptr) {
      const auto f = static_cast<std::size_t>(family - plan_.families.data());
      const auto parts = shared_parts_[f * static_cast<std::size_t>(job_.c().n_kv) +
                                       static_cast<std::size_t>(t.head)];
      merge.first_shared = parts.first;
      merge.shared_tasks = parts.second;
      for (const std::int32_t b : family->members) {
        if (b == t.entry) break;
        merge.shared_row += job_.rows(b);
      }
    }
    if (merge.tasks + merge.shared_tasks > 1) plan_.merges.push_back(merge);
  }

  const Job& job_;
  std::int32_t n_;
  std::vector<int> family_of_;
  std::vector<std::pair<std::size_t, std::size_t>> shared_parts_;  // first task and tasks
  std::int64_t per_part_ = 0;
  Plan plan_;
};

// Which tasks hand their rows to a merge, and the room that they need for it.
void mark_partials(Plan& plan, std::int64_t row_floats, float* room) {
  std::vector<bool> merged(plan.tasks.size());
  for (const Merge& m : plan.merges) {
    for (std::size_t i = 0; i < m.tasks; ++i) merged[m.first_task + i] = true;
    for (std::size_t i = 0; i < m.shared_tasks; ++i) merged[m.first_shared + i] = true;
  }
  plan.partial_floats = 0;
  for (std::size_t i = 0; i < merged.size(); ++i) {
    if (!merged[i]) continue;
    if (room != nullptr) plan.tasks[i].partial = room + plan.partial_floats;
    plan.partial_floats += plan.tasks[i].rows * row_floats;
  }
}

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
  kvc* cache = new kvc{ctx, *config, config->dtype == ASSAY_BF16 ? 2 : 4, {}, {}};
  if (cache->c.Dv == 0) cache->c.Dv = cache->c.D;
  cache->sequences.resize(static_cast<std::size_t>(config->max_seqs));
  cache->tokens.resize(static_cast<std::size_t>(config->n_layers));
  *out = cache;
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
  std::vector<std::int64_t> before;
  for (std::int32_t b = 0; b < n; ++b) {
    before.push_back(cache->layer_of(slots[b], layer).length);
    if (before.back() + cu[b + 1] - cu[b] > c.max_len) return ASSAY_ECAP;
  }
  std::vector<Copy> copies;
  try {
    for (std::int32_t b = 0; b < n; ++b) {
      cache->append(slots[b], layer, cu[b + 1] - cu[b],
                    static_cast<const unsigned char*>(k) + cu[b] * c.n_kv * c.D * cache->element,
                    static_cast<const unsigned char*>(v) + cu[b] * c.n_kv * c.Dv * cache->element,
                    copies);
    }
    cache->copy_all(copies);
  } catch (const std::bad_alloc&) {
    for (std::int32_t b = 0; b < n; ++b)
      cache->truncate(slots[b], layer, before[static_cast<std::size_t>(b)]);
    return ASSAY_ENOMEM;
  }
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
