// A paged key/value cache, and attention that reads it in one launch.
//
// The shape. Decoding, B 8 sequences of L 1024 tokens, 16 query heads on 4 key heads, D 128, fp32:
// 33.6 MB of keys and values, 7.0 us of an H200's 4.8 TB/s, and 67 Mflop of scores and sums. Memory
// is the limit by far, so each key and value is read once, for all query heads of its group at a
// time. Prefill, 128 rows on L 1024, 8/2 heads, D 64: 1 MB and 0.3 Gflop, 4.2 us of 67 Tflop/s of
// fp32: the CUDA cores are the limit, and tensor cores move it.
//
// Storage. A page holds 32 tokens of a layer: for each key head its keys, then its values, rows
// padded to 16 bytes, so that a warp reads whole sectors. The host keeps the lists of pages, and
// how many sequences hold a page: forks share pages, and who writes to a shared one copies it
// first, in the launch that stores the new rows. A page that nobody holds goes back at once.
//
// Quantised storage. The last page of a sequence stays raw; when it is full, it is packed: codes of
// 8 or 4 bits, for keys a step and a low value (bf16) for each channel of the page, since channels
// differ, for values for each token and 32 elements: 1/8 byte an element. Codes become floats in
// registers, on the way to shared memory.
//
// Attention. A block takes rows (query heads of a key head, row by row of the batch) and a chunk of
// the keys. Products are those of tf32 tensor cores, three for one of fp32: x = hi + lo, and
// hi hi' + hi lo' + lo hi' errs by some 2^-22. bf16 is tf32 as it is. Two forms of one kernel:
// - up to 16 rows, decoding: all four warps have the same rows, and each a quarter of a tile of 64
//   keys; they are merged in shared memory. A quarter of the 16 rows may be real; the others cost
//   1.6 us of tensor cores beside 7 us of memory.
// - more rows: 64 a block, 16 a warp, which share tiles of 32 keys.
// The next keys are copied (cp.async) while the values are multiplied, and the other way round.
//
// Banks. Rows of queries, keys and values are padded by 4 floats: the 8 rows of ldmatrix, and
// values of 8 columns from 4 pairs of keys, lie in 32 different banks. Rows of results are padded
// by 8, since half a warp writes pairs of four rows. So nothing is replayed, but for copies of
// narrow heads: where a row has less than 8 pieces of 16 bytes, a quarter warp takes two rows or
// more, and some of their banks are the same (up to an eighth of all passes where D is 16 or
// less).
//
// Split. Chunks of a sequence go to different blocks, whose results are merged after a barrier of
// the grid, in the same launch: a second one costs 3 us. A chunk costs 8 (Dv + 2) bytes a row,
// written and read; plan_chunks takes the number at which that, the busiest SM and what is on its
// way from memory are balanced. What forks share (kvc_attend_shared) is a sequence of its own with
// the rows of all entries.
//
// Launches. Positions and lists of pages come as parameters of the launch (up to 16 KB, which is
// some 2,000 pages); a copy to the device costs 3 us like a launch. One launch a call, two where
// pages are packed.
//
// Tried and rejected, with the modelled time of the first shape: addresses of staged tokens
// computed anew for each 16 bytes, and chunks where only memory and multiplication are weighed (32
// blocks for 132 SMs): 50.0 us, the limit was integer arithmetic; now memory is, 10.8 us. At most 15
// chunks of a history, a lane each at the merge, which is all that the model asks for: an H200 took
// 128.7 us for one history of 32,768 tokens, 8 heads of 64, in place of 75.7.
//
// Considered and rejected: keys and values straight from global memory into the fragments of mma
// (no shared memory, but 16 rows a warp would read prefill's keys 32 times); fp32 FMA for decoding
// (one more kernel, and no faster while memory is the limit); pages of 16 tokens (twice the list,
// and scales that take half of what codes of 4 bits take); looking in kvc_attend for pages that
// entries share (a search of the lists in every call; kvc_attend_shared is told).
#include <cooperative_groups.h>
#include <cuda_bf16.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "abi.h"
#include "common/device.h"
#include "common/tree.h"
#include "common/warp_attention.h"

namespace {

constexpr int kPage = 32;   // tokens
constexpr int kGroup = 32;  // elements of a packed value that share a scale

constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

std::int64_t pages_for(std::int64_t tokens) { return (tokens + kPage - 1) / kPage; }

// --- storage: the layout of a page ---

// The address of a page, with its lowest bit set where it is packed; 0: out of every window.
using PageRef = std::uint64_t;

// Raw: for each key head keys [kPage, D], values [kPage, Dv], rows padded. Packed: the codes in the
// same order, then for each key head scales of the channels [D], of the values [kPage, groups].
struct Layout {
  std::int32_t n_kv, D, Dv;
  std::int32_t element, quant;  // bytes of an element; 0, 8 or 4
  std::int32_t raw_D, raw_Dv;   // elements of a padded row
  std::int32_t packed_D, packed_Dv;

  __host__ __device__ std::int64_t raw_head() const {
    return std::int64_t{kPage} * (raw_D + raw_Dv) * element;
  }
  __host__ __device__ std::int64_t packed_head() const {
    return std::int64_t{kPage} * (packed_D + packed_Dv) * quant / 8;
  }
  __host__ __device__ std::int64_t scales_head() const {
    return 4 * (packed_D + std::int64_t{kPage} * (packed_Dv / kGroup));
  }
  std::int64_t page_bytes(bool packed) const {
    return n_kv * (packed ? packed_head() + scales_head() : raw_head());
  }
  // Of a row: 4 elements wide pieces that hold elements.
  __host__ __device__ std::int32_t width(bool values) const { return values ? Dv : D; }

  // Where a raw row begins.
  __device__ unsigned char* raw_row(unsigned char* page, std::int32_t head, std::int32_t token,
                                    bool values) const {
    unsigned char* at = page + head * raw_head();
    if (values) return at + (std::int64_t{kPage} * raw_D + token * raw_Dv) * element;
    return at + std::int64_t{token} * raw_D * element;
  }
  __device__ unsigned char* codes_row(unsigned char* page, std::int32_t head, std::int32_t token,
                                      bool values) const {
    unsigned char* at = page + head * packed_head();
    if (values) return at + (std::int64_t{kPage} * packed_D + token * packed_Dv) * quant / 8;
    return at + std::int64_t{token} * packed_D * quant / 8;
  }
  // Pairs of bf16: step (low half) and lowest value.
  __device__ std::uint32_t* key_scales(unsigned char* page, std::int32_t head) const {
    return reinterpret_cast<std::uint32_t*>(page + n_kv * packed_head() + head * scales_head());
  }
  __device__ std::uint32_t* value_scales(unsigned char* page, std::int32_t head,
                                         std::int32_t token) const {
    return key_scales(page, head) + packed_D + token * (packed_Dv / kGroup);
  }
};

Layout layout_of(const kvc_config& c) {
  const int element = c.dtype == ASSAY_BF16 ? 2 : 4;
  const auto raw = [&](int n) { return static_cast<std::int32_t>(round_up(n, 16 / element)); };
  const auto packed = [](int n) { return static_cast<std::int32_t>(round_up(n, kGroup)); };
  return {c.n_kv, c.D, c.Dv, element, c.quant, raw(c.D), raw(c.Dv), packed(c.D), packed(c.Dv)};
}

__host__ __device__ bool is_packed(PageRef page) { return (page & 1) != 0; }
__device__ unsigned char* bytes_of(PageRef page) {
  return reinterpret_cast<unsigned char*>(page & ~PageRef{1});
}

// --- storage: the host's side ---

struct Page {
  void* data;  // device memory
  std::int32_t holders;
  bool packed;
};

struct Layer {
  std::int64_t length = 0;
  std::vector<Page*> pages;  // null: out of every window
};

struct Sequence {
  bool alive = false;
  std::vector<Layer> layers;
};

PageRef ref(const Page* page) {
  if (page == nullptr) return 0;
  return reinterpret_cast<PageRef>(page->data) | (page->packed ? 1 : 0);
}

}  // namespace

struct kvc {
  assay_ctx* ctx = nullptr;
  kvc_config c{};
  Layout layout{};
  std::vector<Sequence> sequences;
  std::vector<std::int64_t> tokens;  // of each layer, over all sequences
  std::int64_t held = 0;             // bytes of pages

  cudaStream_t stream() const { return stream_of(ctx); }

  // Null when there is no memory.
  Page* new_page(bool packed) {
    const std::int64_t bytes = layout.page_bytes(packed);
    void* data = ctx->alloc(ctx, static_cast<std::size_t>(bytes), 256, 1);
    if (data == nullptr) return nullptr;
    held += bytes;
    return new Page{data, 1, packed};
  }
  void drop(Page* page) {
    if (page == nullptr || --page->holders > 0) return;
    held -= layout.page_bytes(page->packed);
    ctx->free(ctx, page->data);
    delete page;
  }

  bool known(std::int32_t slot) const {
    return slot >= 0 && slot < c.max_seqs && sequences[static_cast<std::size_t>(slot)].alive;
  }
  Sequence& sequence(std::int32_t slot) { return sequences[static_cast<std::size_t>(slot)]; }
  Layer& layer(std::int32_t slot, std::int32_t l) {
    return sequence(slot).layers[static_cast<std::size_t>(l)];
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
    Layer& from = layer(slot, l);
    if (from.length <= length) return;
    tokens[static_cast<std::size_t>(l)] -= from.length - length;
    from.length = length;
    while (std::ssize(from.pages) > pages_for(length)) {
      drop(from.pages.back());
      from.pages.pop_back();
    }
  }

  void close(std::int32_t slot) {
    for (std::int32_t l = 0; l < c.n_layers; ++l) truncate(slot, l, 0);
    sequence(slot) = {};
  }

  // Pages that no row can see any more after the latest append: a truncation may come first, and the
  // rows of a batch stand further below.
  void release_old(Layer& from, std::int64_t appended) {
    if (c.window < 0) return;
    const std::int64_t rows = std::max<std::int64_t>(appended, KVC_ROLLBACK);
    const std::int64_t first = from.length - KVC_ROLLBACK - rows - c.window;
    for (std::int64_t i = pages_for(c.sinks); (i + 1) * kPage <= first; ++i) {
      Page*& page = from.pages[static_cast<std::size_t>(i)];
      drop(page);
      page = nullptr;
    }
  }
};

namespace {

// --- tables: what the host knows and a kernel needs ---

constexpr std::size_t kInlineBytes = 16384;
using Table = InlineTable<kInlineBytes>;
using TableBuilder = InlineTableBuilder<kInlineBytes>;

template <class Entry>
__device__ const Entry& find_entry(const Entry* entries, std::int32_t n, std::int64_t at) {
  std::int32_t low = 0, high = n;
  while (high - low > 1) {
    const std::int32_t middle = (low + high) / 2;
    (entries[middle].first <= at ? low : high) = middle;
  }
  return entries[low];
}

// --- elements, four at a time ---

__device__ float4 widen(uint2 x) {
  return make_float4(__uint_as_float(x.x << 16), __uint_as_float(x.x & 0xffff0000),
                     __uint_as_float(x.y << 16), __uint_as_float(x.y & 0xffff0000));
}
__device__ float4 load4(const float* p) { return *reinterpret_cast<const float4*>(p); }
__device__ float4 load4(const __nv_bfloat16* p) {
  return widen(*reinterpret_cast<const uint2*>(p));
}
__device__ void store4(float* p, float4 x) { *reinterpret_cast<float4*>(p) = x; }
__device__ void store4(__nv_bfloat16* p, float4 x) {
  const __nv_bfloat162 a = __floats2bfloat162_rn(x.x, x.y), b = __floats2bfloat162_rn(x.z, x.w);
  uint2 both;
  std::memcpy(&both.x, &a, 4);
  std::memcpy(&both.y, &b, 4);
  *reinterpret_cast<uint2*>(p) = both;
}
__device__ float to_float(float x) { return x; }
__device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ void put(float* p, float x) { *p = x; }
__device__ void put(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }

__device__ float step_of(std::uint32_t scale) { return __uint_as_float(scale << 16); }
__device__ float low_of(std::uint32_t scale) { return __uint_as_float(scale & 0xffff0000); }

// Codes of four neighbours; int4: 16 bits.
__device__ float4 decode4(const unsigned char* row, std::int32_t d, std::int32_t quant,
                          uint4 scale) {
  std::uint32_t codes[4];
  if (quant == 8) {
    const std::uint32_t all = *reinterpret_cast<const std::uint32_t*>(row + d);
    for (int i = 0; i < 4; ++i) codes[i] = all >> (8 * i) & 255;
  } else {
    const std::uint32_t all = *reinterpret_cast<const std::uint16_t*>(row + d / 2);
    for (int i = 0; i < 4; ++i) codes[i] = all >> (4 * i) & 15;
  }
  const auto value = [](std::uint32_t code, std::uint32_t s) {
    return static_cast<float>(code) * step_of(s) + low_of(s);
  };
  return make_float4(value(codes[0], scale.x), value(codes[1], scale.y), value(codes[2], scale.z),
                     value(codes[3], scale.w));
}

// Elements d to d + 3 of a cached row, in floats.
template <class T>
__device__ float4 cached4(const Layout& layout, PageRef page, std::int32_t head, std::int32_t token,
                          bool values, std::int32_t d) {
  unsigned char* data = bytes_of(page);
  if (!is_packed(page)) {
    return load4(reinterpret_cast<const T*>(layout.raw_row(data, head, token, values)) + d);
  }
  const unsigned char* row = layout.codes_row(data, head, token, values);
  uint4 scale;
  if (values) {
    const std::uint32_t s = layout.value_scales(data, head, token)[d / kGroup];
    scale = make_uint4(s, s, s, s);
  } else {
    scale = *reinterpret_cast<const uint4*>(layout.key_scales(data, head) + d);
  }
  return decode4(row, d, layout.quant, scale);
}

// --- appending and reading ---

// Rows of a batch that go to a sequence, whose pages begin with the one of its first new token.
struct StoreEntry {
  std::int64_t first;  // of its rows in the batch
  std::int64_t start;  // tokens in the page before
  std::int64_t pages;  // index of its first page in the list
};

// Tokens that go from a page to another of its own, raw, before more follow.
struct CopyJob {
  PageRef from, to;
  std::int64_t tokens;
};

struct Store {
  Layout layout;
  std::int64_t rows;  // of the batch; further work: tokens of pages to copy, kPage for each
  std::int32_t entries;
  bool vector;  // the caller's rows are aligned to four elements
  std::uint32_t entry_table, page_table, copy_table;
  const void *k, *v;
};

// Four elements of a caller's row of D, zeros behind.
template <class T>
__device__ float4 given4(const T* row, std::int32_t d, std::int32_t D, bool vector) {
  if (vector) return load4(row + d);
  float4 x = make_float4(0, 0, 0, 0);
  x.x = to_float(row[d]);
  if (d + 1 < D) x.y = to_float(row[d + 1]);
  if (d + 2 < D) x.z = to_float(row[d + 2]);
  if (d + 3 < D) x.w = to_float(row[d + 3]);
  return x;
}

// A warp for each row, or token to copy.
template <class T>
__global__ void store_rows(const __grid_constant__ Table table, Store s, std::int64_t work) {
  const std::int64_t at =
      (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
  const auto lane = static_cast<std::int32_t>(threadIdx.x % kWarp);
  if (at >= work) return;
  const Layout& l = s.layout;
  unsigned char* to = nullptr;
  std::int32_t token = 0;
  CopyJob job{};
  if (at < s.rows) {
    const auto& entry = find_entry(table.at<StoreEntry>(s.entry_table), s.entries, at);
    const std::int64_t place = entry.start + at - entry.first;
    to = bytes_of(table.at<PageRef>(s.page_table)[entry.pages + place / kPage]);
    token = static_cast<std::int32_t>(place % kPage);
  } else {
    job = table.at<CopyJob>(s.copy_table)[(at - s.rows) / kPage];
    token = static_cast<std::int32_t>((at - s.rows) % kPage);
    to = bytes_of(job.to);
    if (token >= job.tokens) return;
  }
  for (int values = 0; values < 2; ++values) {
    const std::int32_t D = l.width(values != 0), room = values != 0 ? l.raw_Dv : l.raw_D;
    const std::int32_t quads = room / 4;
    const T* given = static_cast<const T*>(values != 0 ? s.v : s.k) + at * l.n_kv * D;
    for (std::int32_t i = lane; i < l.n_kv * quads; i += kWarp) {
      const std::int32_t head = i / quads, d = i % quads * 4;
      float4 x = make_float4(0, 0, 0, 0);
      if (at >= s.rows) {
        x = cached4<T>(l, job.from, head, token, values != 0, d);
      } else if (d < D) {
        x = given4(given + std::int64_t{head} * D, d, D, s.vector);
      }
      store4(reinterpret_cast<T*>(l.raw_row(to, head, token, values != 0)) + d, x);
    }
  }
}

struct Read {
  Layout layout;
  std::int64_t first, rows;  // first: token in the first page of the list
  void *k, *v;
};

// A warp for each token.
template <class T>
__global__ void read_rows(const __grid_constant__ Table table, Read r) {
  const std::int64_t at =
      (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / kWarp;
  if (at >= r.rows) return;
  const Layout& l = r.layout;
  const std::int64_t place = r.first + at;
  const PageRef page = table.at<PageRef>(0)[place / kPage];
  for (int values = 0; values < 2; ++values) {
    const std::int32_t D = l.width(values != 0), quads = (D + 3) / 4;
    T* out = static_cast<T*>(values != 0 ? r.v : r.k) + at * l.n_kv * D;
    for (auto i = static_cast<std::int32_t>(threadIdx.x % kWarp); i < l.n_kv * quads; i += kWarp) {
      const std::int32_t head = i / quads, d = i % quads * 4;
      const float4 x =
          cached4<T>(l, page, head, static_cast<std::int32_t>(place % kPage), values != 0, d);
      T* row = out + std::int64_t{head} * D + d;
      put(row, x.x);
      if (d + 1 < D) put(row + 1, x.y);
      if (d + 2 < D) put(row + 2, x.z);
      if (d + 3 < D) put(row + 3, x.w);
    }
  }
}

// --- packing a full page ---

// Values from low to high as code * step + low; both are stored as bf16, rounded so that the range
// still holds all values.
__device__ std::uint32_t scale_of(float low, float high, float levels) {
  __nv_bfloat16 bottom = __float2bfloat16(low);
  if (__bfloat162float(bottom) > low) bottom = __float2bfloat16(low - fabsf(low) / 128);
  const __nv_bfloat16 step =
      __float2bfloat16((high - __bfloat162float(bottom)) / levels * (1 + 1.0f / 256));
  return static_cast<std::uint32_t>(__bfloat16_as_ushort(step)) |
         static_cast<std::uint32_t>(__bfloat16_as_ushort(bottom)) << 16;
}

__device__ std::uint32_t encode(float x, std::uint32_t scale, int levels) {
  const float step = step_of(scale);
  if (!(step > 0)) return 0;
  return static_cast<std::uint32_t>(
      min(max(__float2int_rn((x - low_of(scale)) / step), 0), levels));
}

__device__ void encode4(unsigned char* row, std::int32_t d, std::int32_t quant, float4 x,
                        uint4 scale) {
  const int levels = (1 << quant) - 1;
  const std::uint32_t a = encode(x.x, scale.x, levels), b = encode(x.y, scale.y, levels),
                      c = encode(x.z, scale.z, levels), e = encode(x.w, scale.w, levels);
  if (quant == 8) {
    *reinterpret_cast<std::uint32_t*>(row + d) = a | b << 8 | c << 16 | e << 24;
  } else {
    *reinterpret_cast<std::uint16_t*>(row + d / 2) =
        static_cast<std::uint16_t>(a | b << 4 | c << 8 | e << 12);
  }
}

struct PackJob {
  PageRef from, to;
};

// A block for each page and key head. Keys: a thread for four channels; values: a thread for the
// elements of a token that share a scale.
template <class T>
__global__ void pack_pages(const __grid_constant__ Table table, Layout l) {
  const PackJob job = table.at<PackJob>(0)[blockIdx.x / l.n_kv];
  const auto head = static_cast<std::int32_t>(blockIdx.x % l.n_kv);
  unsigned char* to = bytes_of(job.to);
  const auto levels = static_cast<float>((1 << l.quant) - 1);
  const auto raw4 = [&](std::int32_t token, bool values, std::int32_t d) {
    if (d >= l.width(values)) return make_float4(0, 0, 0, 0);
    return cached4<T>(l, job.from, head, token, values, d);
  };
  for (std::int32_t d = 4 * static_cast<std::int32_t>(threadIdx.x); d < l.packed_D;
       d += 4 * static_cast<std::int32_t>(blockDim.x)) {
    float4 low = raw4(0, false, d), high = low;
    for (std::int32_t t = 1; t < kPage; ++t) {
      const float4 x = raw4(t, false, d);
      low = make_float4(fminf(low.x, x.x), fminf(low.y, x.y), fminf(low.z, x.z), fminf(low.w, x.w));
      high = make_float4(fmaxf(high.x, x.x), fmaxf(high.y, x.y), fmaxf(high.z, x.z),
                         fmaxf(high.w, x.w));
    }
    const uint4 scale =
        make_uint4(scale_of(low.x, high.x, levels), scale_of(low.y, high.y, levels),
                   scale_of(low.z, high.z, levels), scale_of(low.w, high.w, levels));
    *reinterpret_cast<uint4*>(l.key_scales(to, head) + d) = scale;
    for (std::int32_t t = 0; t < kPage; ++t)
      encode4(l.codes_row(to, head, t, false), d, l.quant, raw4(t, false, d), scale);
  }
  const std::int32_t groups = l.packed_Dv / kGroup;
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < kPage * groups;
       i += static_cast<std::int32_t>(blockDim.x)) {
    const std::int32_t t = i / groups, g = i % groups;
    float low = INFINITY, high = -INFINITY;
    for (std::int32_t d = g * kGroup; d < (g + 1) * kGroup; d += 4) {
      const float4 x = raw4(t, true, d);
      low = fminf(fminf(low, fminf(x.x, x.y)), fminf(x.z, x.w));
      high = fmaxf(fmaxf(high, fmaxf(x.x, x.y)), fmaxf(x.z, x.w));
    }
    const std::uint32_t s = scale_of(low, high, levels);
    l.value_scales(to, head, t)[g] = s;
    for (std::int32_t d = g * kGroup; d < (g + 1) * kGroup; d += 4)
      encode4(l.codes_row(to, head, t, true), d, l.quant, raw4(t, true, d), make_uint4(s, s, s, s));
  }
}

// --- attention: pieces of a tile ---

constexpr int kWarps = 4, kThreads = kWarps * kWarp;

// kDecode: 16 rows, of which each warp has its own 16 of 64 keys; else 64 rows, 16 a warp, and 32
// keys.
template <bool kDecode>
struct Form {
  static constexpr int kRows = kDecode ? 16 : 16 * kWarps;
  static constexpr int kKeys = kDecode ? 64 : 32;      // of a tile
  static constexpr int kWarpKeys = kDecode ? 16 : 32;  // of a warp
};

// Floats of a row of results in shared memory: a half warp writes pairs of four rows, which lie 8
// banks apart.
template <int kOut>
constexpr int kResultStride = kOut + 8;

// Into shared memory, in one access: of two every second bank would stay idle.
__device__ void store_pair(float* to, float x, float y) {
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(shared_address(to)), "f"(x), "f"(y)
               : "memory");
}

__device__ void copy_async(float* to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)),
               "l"(__cvta_generic_to_global(from))
               : "memory");
}

// --- attention: the kernel ---

// Rows of the batch that attend to tokens of a list of pages; and the work that it is cut into: for
// each slice of the values, key head and tile of rows, chunks of the keys.
struct Item {
  std::int64_t first;           // piece of work
  std::int64_t begin, end;      // tokens
  std::int64_t prefix;          // of a tree: tokens before its nodes; else the end
  std::int64_t pages;           // index in the list of all
  std::int64_t row;             // the first of its rows in the batch
  std::int64_t partial;         // the first row of its partial results
  std::int64_t keys_per_chunk;  // a multiple of the tile
  std::int32_t rows;            // times query heads of a key head
  std::int32_t tiles, chunks;   // tiles of rows; chunks of keys
};

struct Attention {
  Layout layout;
  std::int32_t items, n_q, group, window, sinks;
  std::int32_t slices, quads, value_quads;     // of a staged row: log 2 of its pieces of 16 bytes
  std::int32_t stride;                         // floats of a staged row of queries or keys
  float scale;                                 // times log2 e: weights are powers of 2
  bool vector, tree, shared, partial_results;  // shared: item 0 has the rows of all entries
  std::int64_t work, rows;                     // pieces; rows of the batch
  std::uint32_t item_table, page_table, position_table, span_table, item_of_row;
  const void* q;
  void* o;
  float* lse;      // or null
  float* partial;  // [rows, Dv]
  float2* partial_stats;

  __device__ std::int64_t query(const Item& item, std::int32_t kv, std::int32_t row) const {
    return (item.row + row / group) * n_q + kv * group + row % group;
  }
  __device__ std::int64_t partial_row(const Item& item, std::int32_t kv, std::int32_t chunk,
                                      std::int32_t row) const {
    return item.partial + (std::int64_t{kv} * item.chunks + chunk) * item.rows + row;
  }
};

// Where the elements of a head go in shared memory.
struct Staging {
  std::int32_t log_quads;     // of a row: log 2 of its pieces of 16 bytes, rounded up
  std::int32_t first, width;  // elements: of the cached row, and how many
  std::int32_t stride;        // floats of a staged row
};

// Stages keys or values of a head, whole pages from token j on, as floats; zeros for tokens at
// `end` and behind, out of the window, and for elements that do not exist. A thread has 16 bytes of
// every few rows: addresses are sums.
template <class T, int kKeys>
__device__ void stage(const Layout& l, const PageRef* pages, std::int32_t head, bool values,
                      std::int64_t j, std::int64_t end, const Staging& s, float* to) {
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const std::int32_t d = (thread & ((1 << s.log_quads) - 1)) * 4, first = thread >> s.log_quads;
  const std::int32_t step = kThreads >> s.log_quads;
  if (d >= s.width) return;
  const std::int32_t room = values ? l.raw_Dv : l.raw_D;
  const std::int32_t step_bytes = step * room * l.element, step_floats = step * s.stride;
#pragma unroll
  for (std::int32_t page = 0; page < kKeys / kPage; ++page) {
    const auto tokens = static_cast<std::int32_t>(
        max(std::int64_t{0}, min(end - j - page * kPage, std::int64_t{kPage})));
    const PageRef ref = tokens > 0 ? pages[j / kPage + page] : 0;
    const std::int32_t n = ref != 0 && s.first + d < room ? tokens : 0;
    std::int32_t r = first;
    float* at = to + (page * kPage + r) * s.stride + d;
    if (sizeof(T) == 4 && !is_packed(ref)) {
      const unsigned char* from = l.raw_row(bytes_of(ref), head, r, values) + (s.first + d) * 4;
#pragma unroll 4
      for (; r < n; r += step, at += step_floats, from += step_bytes) copy_async(at, from);
    } else {
      for (; r < n; r += step, at += step_floats)
        store4(at, cached4<T>(l, ref, head, r, values, s.first + d));
    }
    for (; r < kPage; r += step, at += step_floats) store4(at, make_float4(0, 0, 0, 0));
  }
}

// What a row of the tile sees.
struct RowView {
  std::int32_t position;  // INT_MIN: no row
  Span span;              // of a tree
};

struct Sight {
  const Attention& a;
  const Item& item;
  const std::int32_t* positions;  // of the batch's rows
  const Span* spans;

  __device__ bool sees(const RowView& row, std::int64_t key) const {
    if (key < item.begin || key >= item.end) return false;
    std::int64_t position = key;
    if (key >= item.prefix) {
      const std::int64_t node = item.row + key - item.prefix;
      if (!spans[node].holds(row.span)) return false;
      position = positions[node];
    }
    return position <= row.position &&
           (a.window < 0 || position > std::int64_t{row.position} - a.window || position < a.sinks);
  }
};

template <int kOut, bool kDecode, class T>
__device__ void attend_piece(const Attention& a, const Item& item, const Table& table,
                             std::int64_t piece, float* memory) {
  using F = Form<kDecode>;
  constexpr bool kExact = sizeof(T) == 2;
  constexpr int kValueStride = kOut + 4;
  const Layout& l = a.layout;
  float *q = memory, *k = q + F::kRows * a.stride, *v = k + F::kKeys * a.stride;
  __shared__ std::int32_t lowest, highest;  // positions of the tile's rows
  const auto chunk = static_cast<std::int32_t>(piece % item.chunks);
  piece /= item.chunks;
  const auto tile = static_cast<std::int32_t>(piece % item.tiles);
  piece /= item.tiles;
  const auto kv = static_cast<std::int32_t>(piece % l.n_kv);
  const auto slice = static_cast<std::int32_t>(piece / l.n_kv) * kOut;
  const std::int32_t first_row = tile * F::kRows, rows = min(item.rows - first_row, F::kRows);
  const auto* pages = table.at<PageRef>(a.page_table) + item.pages;
  const auto* positions = table.at<std::int32_t>(a.position_table);
  const auto* spans = table.at<Span>(a.span_table);
  const Sight sight{a, item, positions, spans};
  const std::int64_t begin = item.begin / kPage * kPage + chunk * item.keys_per_chunk;
  const std::int64_t end = min(begin + item.keys_per_chunk, item.end);

  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int warp_row = kDecode ? 0 : warp * 16, warp_key = kDecode ? warp * F::kWarpKeys : 0;
  RowView view[2];
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int r = warp_row + h * 8 + lane / 4;
    view[h] = {INT_MIN, {0, 0}};
    if (r >= rows) continue;
    const std::int64_t row = item.row + (first_row + r) / a.group;
    view[h].position = positions[row];
    if (a.tree) view[h].span = spans[row];
  }
  __syncthreads();  // the shared memory of the piece before has been used
  if (threadIdx.x == 0) {
    lowest = INT_MAX;
    highest = INT_MIN;
  }
  __syncthreads();
  std::int32_t least = INT_MAX, most = INT_MIN;
  for (const RowView& row : view) {
    if (row.position != INT_MIN) least = min(least, row.position);
    most = max(most, row.position);
  }
  least = __reduce_min_sync(kAll, least);
  most = __reduce_max_sync(kAll, most);
  if (lane == 0) {  // one of a warp: lanes that go for one word go one after another
    atomicMin(&lowest, least);
    atomicMax(&highest, most);
  }
  // Queries, zeros behind.
  for (int i = threadIdx.x; i < F::kRows << a.quads; i += kThreads) {
    const std::int32_t r = i >> a.quads, d = (i & ((1 << a.quads) - 1)) * 4;
    if (d >= a.stride - 4) continue;
    float4 x = make_float4(0, 0, 0, 0);
    if (r < rows && d < l.D) {
      const T* row = static_cast<const T*>(a.q) + a.query(item, kv, first_row + r) * l.D;
      x = given4(row, d, l.D, a.vector);
    }
    store4(q + r * a.stride + d, x);
  }
  __syncthreads();
  const std::int64_t low = lowest, high = highest;
  const bool idle = warp_row >= rows;

  // The next tile from j on that a row sees; end if there is none.
  const auto next_tile = [&](std::int64_t j) {
    for (; j < end; j += F::kKeys) {
      const std::int64_t last = j + F::kKeys - 1;
      if (last >= item.prefix) return j;
      if (j > high) return end;
      if (a.window < 0 || last > low - a.window || j < a.sinks) return j;
    }
    return end;
  };
  const auto stage_keys = [&](std::int64_t j) {
    stage<T, F::kKeys>(l, pages, kv, false, j, end, {a.quads, 0, a.stride - 4, a.stride}, k);
  };
  const auto stage_values = [&](std::int64_t j) {
    stage<T, F::kKeys>(l, pages, kv, true, j, end, {a.value_quads, slice, kOut, kValueStride}, v);
  };
  WarpRows<kOut, F::kWarpKeys, kExact> state;
  std::int64_t j = next_tile(begin);
  if (j < end) stage_keys(j);
  commit_copies();
  if (j < end) stage_values(j);
  commit_copies();
  while (j < end) {
    const std::int64_t next = next_tile(j + F::kKeys);
    wait_copies<1>();
    __syncthreads();  // the keys are there
    if (!idle) state.scores(q + warp_row * a.stride, k + warp_key * a.stride, a.stride, l.D);
    __syncthreads();  // and have been used
    if (next < end) stage_keys(next);
    commit_copies();
    const std::int64_t last = j + F::kKeys - 1;
    const bool masked = j < item.begin || last >= end || last >= item.prefix || last > low ||
                        (a.window >= 0 && j <= high - a.window);
    if (!idle) {
      state.weights(a.scale, masked, [&](int h, int column) {
        const std::int64_t key = j + warp_key + column;
        return key < end && sight.sees(view[h], key);
      });
    }
    wait_copies<1>();
    __syncthreads();  // the values are there
    if (!idle) state.add_values(v + warp_key * kValueStride);
    __syncthreads();  // and have been used
    if (next < end) stage_values(next);
    commit_copies();
    j = next;
  }
  wait_copies<0>();
  state.add_up_columns();

  // What the warps found goes through shared memory: in decoding it is merged there.
  constexpr int kParts = kDecode ? kWarps : 1;
  __shared__ float2 stats[kWarps * 16];
  constexpr int kStride = kResultStride<kOut>;
  float* outputs = k;  // [kWarps * 16, kStride]
  __syncthreads();
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int at = warp * 16 + h * 8 + lane / 4;
#pragma unroll
    for (int n = 0; n < kOut / 8; ++n) {
      store_pair(outputs + at * kStride + n * 8 + lane % 4 * 2, state.out[n][2 * h],
                 state.out[n][2 * h + 1]);
    }
    if (lane % 4 == 0) stats[at] = make_float2(state.max[h], state.sum[h]);
  }
  __syncthreads();
  const std::int32_t width = min(l.Dv - slice, kOut);
  constexpr int kQuads = kOut / 4;
  for (int i = threadIdx.x; i < rows * kQuads; i += kThreads) {
    const int r = i / kQuads, d = i % kQuads * 4;
    if (d >= width) continue;
    float max = -INFINITY, sum = 0;
    for (int part = 0; part < kParts; ++part) max = fmaxf(max, stats[part * 16 + r].x);
    const float base = max == -INFINITY ? 0.0f : max;
    float4 x = make_float4(0, 0, 0, 0);
    for (int part = 0; part < kParts; ++part) {
      const float2 s = stats[part * 16 + r];
      const float weight = exp2_fast(s.x - base);
      const float4 y = load4(outputs + (part * 16 + r) * kStride + d);
      sum += weight * s.y;
      x = make_float4(x.x + weight * y.x, x.y + weight * y.y, x.z + weight * y.z,
                      x.w + weight * y.w);
    }
    const std::int64_t query = a.query(item, kv, first_row + r);
    if (a.partial_results) {
      const std::int64_t at = a.partial_row(item, kv, chunk, first_row + r);
      float* out = a.partial + at * l.raw_Dv + slice + d;
      store4(out, x);  // rows of partial results are padded
      if (slice + d == 0) a.partial_stats[at] = make_float2(max, sum);
      continue;
    }
    const float inverse = sum > 0 ? 1 / sum : 0.0f;
    x = make_float4(x.x * inverse, x.y * inverse, x.z * inverse, x.w * inverse);
    T* out = static_cast<T*>(a.o) + query * l.Dv + slice + d;
    if (a.vector) {
      store4(out, x);
    } else {
      put(out, x.x);
      if (d + 1 < width) put(out + 1, x.y);
      if (d + 2 < width) put(out + 2, x.z);
      if (d + 3 < width) put(out + 3, x.w);
    }
    if (slice + d == 0 && a.lse != nullptr)
      a.lse[query] = sum > 0 ? (max + log2f(sum)) * kLn2 : -INFINITY;
  }
}

constexpr std::int32_t kMostChunks = 64;  // of an item

// A warp merges the chunks of a query head of a row, those of what is shared first. `shares` has
// room for twice kMostChunks.
template <class T>
__device__ void merge(const Attention& a, const Item* items, std::int32_t own, std::int64_t query,
                      float* shares) {
  const Layout& l = a.layout;
  const int lane = threadIdx.x % kWarp;
  const auto head = static_cast<std::int32_t>(query % a.n_q), kv = head / a.group;
  const std::int64_t row = query / a.n_q;
  const std::int32_t before = a.shared ? items[0].chunks : 0;
  const Item& last = items[own];
  const auto place = [&](int part) {
    const Item& item = part < before ? items[0] : last;
    const auto r = static_cast<std::int32_t>((row - item.row) * a.group + head % a.group);
    return a.partial_row(item, kv, part < before ? part : part - before, r);
  };
  const std::int32_t parts = before + last.chunks;
  float max = -INFINITY, sum = 0;
  for (int part = lane; part < parts; part += kWarp) {
    const float2 stats = a.partial_stats[place(part)];
    shares[part] = stats.x;
    const float larger = fmaxf(max, stats.x), shift = larger == -INFINITY ? 0.0f : larger;
    sum = sum * exp2_fast(max - shift) + stats.y * exp2_fast(stats.x - shift);
    max = larger;
  }
  const float own_max = max;
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    max = fmaxf(max, __shfl_xor_sync(kAll, max, offset));
  const float base = max == -INFINITY ? 0.0f : max;
  sum *= exp2_fast(own_max - base);
  for (int offset = kWarp / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
  const float inverse = sum > 0 ? 1 / sum : 0.0f;
  for (int part = lane; part < parts; part += kWarp)
    shares[part] = exp2_fast(shares[part] - base) * inverse;
  __syncwarp();
  for (std::int32_t d = lane; d < l.Dv; d += kWarp) {
    float x = 0;
#pragma unroll 4
    for (int part = 0; part < parts; ++part)
      x += shares[part] * a.partial[place(part) * l.raw_Dv + d];
    put(static_cast<T*>(a.o) + query * l.Dv + d, x);
  }
  __syncwarp();
  if (lane == 0 && a.lse != nullptr)
    a.lse[query] = sum > 0 ? (base + log2f(sum)) * kLn2 : -INFINITY;
}

template <int kOut, bool kDecode, class T>
__global__ void __launch_bounds__(kThreads)
    attend(const __grid_constant__ Table table, const __grid_constant__ Attention a) {
  extern __shared__ __align__(16) float memory[];
  const auto* items = table.at<Item>(a.item_table);
  for (std::int64_t at = blockIdx.x; at < a.work; at += gridDim.x) {
    const Item& item = find_entry(items, a.items, at);
    attend_piece<kOut, kDecode, T>(a, item, table, at - item.first, memory);
  }
  if (!a.partial_results) return;
  cooperative_groups::this_grid().sync();
  const auto* item_of_row = table.at<std::int32_t>(a.item_of_row);
  const std::int64_t warps = std::int64_t{gridDim.x} * kWarps;
  for (std::int64_t query = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
       query < a.rows * a.n_q; query += warps) {
    merge<T>(a, items, item_of_row[query / a.n_q], query,
             memory + threadIdx.x / kWarp * 2 * kMostChunks);
  }
}

// --- attention: the host ---

struct Cut {
  std::int64_t work = 0, partial_rows = 0, longest = 0;  // longest piece, in tokens
  bool split = false;
};

// Cuts the items into pieces of work.
Cut cut(std::vector<Item>& items, std::int64_t heads, int tile_rows, std::int64_t keys_per_chunk) {
  Cut all;
  for (Item& item : items) {
    const std::int64_t keys = item.end - item.begin / kPage * kPage;
    item.keys_per_chunk = keys_per_chunk;
    item.chunks = static_cast<std::int32_t>(
        std::max<std::int64_t>(1, (keys + keys_per_chunk - 1) / keys_per_chunk));
    item.tiles = (item.rows + tile_rows - 1) / tile_rows;
    item.first = all.work;
    item.partial = all.partial_rows;
    all.work += heads * item.tiles * item.chunks;
    all.partial_rows += heads * item.rows * item.chunks;
    all.longest = std::max(all.longest, std::min(keys, keys_per_chunk));
    all.split = all.split || item.chunks > 1;
  }
  return all;
}

// Chunks that take least: what memory takes and what the busiest multiprocessor takes; at most
// some 2 MB of partial results. A token costs a block of 16 rows 3 * 4 * 16 D flops of tf32,
// of which an SM of an H200 does 1,892 a clock, or the path to its memory: 128 bytes a clock.
// Memory is slower where too little is on its way: 4.8 TB/s at 900 ns of latency are 4.3 MB, and of
// its tile of keys and values a block has a quarter on the way, since it waits for either in turn.
Cut plan_chunks(std::vector<Item>& items, const Layout& l, int tile_rows, int tile_keys) {
  constexpr double kMostPartial = 2.2e6, kFullMemory = 4.3e6;  // bytes
  const double D = l.D + l.Dv, element = l.quant != 0 ? l.quant / 8.0 : l.element;
  const double clocks = std::max(6.0 * tile_rows * D / 1892, element * D / 128);
  const double bytes_a_clock = 4.8e12 / 1.98e9, count = multiprocessors();
  std::int64_t most_keys = 1;
  double tokens = 0;
  for (const Item& item : items) {
    most_keys = std::max(most_keys, item.end - item.begin / kPage * kPage);
    const std::int64_t tiles = (item.rows + tile_rows - 1) / tile_rows;
    tokens += static_cast<double>((item.end - item.begin) * tiles * l.n_kv);
  }
  double best = INFINITY;
  std::int64_t best_length = round_up(most_keys, tile_keys);
  // Finer than a chunk of the longest: where lengths differ, the others make up for it.
  for (std::int64_t chunks = 1; chunks <= kMostChunks; ++chunks) {
    const std::int64_t length = round_up((most_keys + chunks - 1) / chunks, tile_keys);
    const Cut c = cut(items, l.n_kv, tile_rows, length);
    const double partial = c.split ? static_cast<double>(c.partial_rows) * (l.Dv + 2) * 4 : 0;
    if (chunks > 1 && partial > kMostPartial) break;
    const double in_flight = static_cast<double>(c.work) * tile_keys * D * element / 4;
    const double memory = (tokens * D * element + 2 * partial) / bytes_a_clock *
                          std::max(1.0, kFullMemory / in_flight);
    const double busiest = std::max(static_cast<double>(c.longest), tokens / count) * clocks;
    if (memory + busiest < best) {
      best = memory + busiest;
      best_length = length;
    }
  }
  return cut(items, l.n_kv, tile_rows, best_length);
}

// The parts of a batch that attend.
struct Batch {
  std::vector<Item> items;
  std::vector<PageRef> pages;
  std::vector<std::int32_t> positions;  // of each row
  std::vector<Span> spans;              // of each row, in trees
  std::vector<std::int32_t> item_of_row;
  bool shared = false;

  void add_pages(const Layer& layer, std::int64_t end) {
    for (std::int64_t i = 0; i < pages_for(end); ++i)
      pages.push_back(ref(layer.pages[static_cast<std::size_t>(i)]));
  }
};

std::int32_t log2_above(std::int32_t n) {
  std::int32_t log = 0;
  while (1 << log < n) ++log;
  return log;
}

bool aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

struct AttendCall {
  kvc* cache;
  const void* q;
  float scale;
  void* o;
  float* lse;
};

template <int kOut, bool kDecode, class T>
int launch_attend(const AttendCall& call, Batch& batch) {
  using F = Form<kDecode>;
  const kvc* cache = call.cache;
  const Layout& l = cache->layout;
  Attention a{};
  a.layout = l;
  a.items = static_cast<std::int32_t>(batch.items.size());
  a.n_q = cache->c.n_q;
  a.group = a.n_q / l.n_kv;
  a.window = cache->c.window;
  a.sinks = cache->c.sinks;
  a.slices = (l.Dv + kOut - 1) / kOut;
  a.stride = static_cast<std::int32_t>(round_up(l.D, 8)) + 4;
  a.quads = log2_above((a.stride - 4) / 4);
  a.value_quads = log2_above(kOut / 4);
  a.scale = call.scale * kLog2E;
  a.vector = l.D % 4 == 0 && l.Dv % 4 == 0 && aligned(call.q) && aligned(call.o);
  a.tree = !batch.spans.empty();
  a.shared = batch.shared;
  a.rows = std::ssize(batch.positions);
  a.q = call.q;
  a.o = call.o;
  a.lse = call.lse;
  const Cut pieces = plan_chunks(batch.items, l, F::kRows, F::kKeys);
  // Slices of the values repeat the scores.
  std::int64_t first = 0;
  for (Item& item : batch.items) {
    item.first = first;
    first += std::int64_t{a.slices} * l.n_kv * item.tiles * item.chunks;
  }
  a.work = first;
  a.partial_results = pieces.split || batch.shared;
  TableBuilder builder;
  a.item_table = builder.add(batch.items);
  a.page_table = builder.add(batch.pages);
  a.position_table = builder.add(batch.positions);
  a.span_table = builder.add(batch.spans);
  a.item_of_row = builder.add(batch.item_of_row);
  const auto rows = static_cast<std::size_t>(a.partial_results ? pieces.partial_rows : 0);
  const Scratch scratch(cache->ctx, builder.scratch_bytes());
  const Scratch partial(
      cache->ctx, rows * (static_cast<std::size_t>(l.raw_Dv) * sizeof(float) + sizeof(float2)));
  if (scratch.failed() || partial.failed()) return ASSAY_ENOMEM;
  a.partial = partial.as<float>();
  if (rows > 0) {
    a.partial_stats =
        reinterpret_cast<float2*>(a.partial + rows * static_cast<std::size_t>(l.raw_Dv));
  }

  const auto kernel = attend<kOut, kDecode, T>;
  const std::int64_t results = kWarps * 16 * kResultStride<kOut>;
  const std::int64_t tiles = (F::kRows + F::kKeys) * a.stride + F::kKeys * (kOut + 4);
  const auto bytes =
      static_cast<int>(4 * std::max<std::int64_t>(tiles, F::kRows * a.stride + results));
  int resident = 0;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) !=
          cudaSuccess ||
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(
          &resident, kernel, kThreads, static_cast<std::size_t>(bytes)) != cudaSuccess ||
      resident < 1) {
    return ASSAY_EINTERNAL;
  }
  static thread_local Table table;  // 16 KB: not on the stack of a caller's thread
  builder.upload(cache->ctx, scratch, table);
  const auto blocks = static_cast<unsigned>(
      std::min<std::int64_t>(a.work, std::int64_t{resident} * multiprocessors()));
  void* arguments[] = {&table, &a};
  cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), dim3(blocks), dim3(kThreads),
                              arguments, static_cast<std::size_t>(bytes), cache->stream());
  return launch_status();
}

constexpr std::int32_t kWidestKey = 512;       // what shared memory has room for
constexpr std::int32_t kWidestManyRows = 256;  // and with 64 rows

template <class T>
int attend_batch(const AttendCall& call, Batch& batch) {
  const Layout& l = call.cache->layout;
  std::int32_t most_rows = 0;
  for (const Item& item : batch.items) most_rows = std::max(most_rows, item.rows);
  const bool decode = most_rows <= 16 || l.D > kWidestManyRows;
  if (l.Dv <= 32)
    return decode ? launch_attend<32, true, T>(call, batch)
                  : launch_attend<32, false, T>(call, batch);
  if (l.Dv <= 64)
    return decode ? launch_attend<64, true, T>(call, batch)
                  : launch_attend<64, false, T>(call, batch);
  return decode ? launch_attend<128, true, T>(call, batch)
                : launch_attend<128, false, T>(call, batch);
}

int run_attention(const AttendCall& call, Batch& batch) {
  if (call.cache->c.dtype == ASSAY_BF16) return attend_batch<__nv_bfloat16>(call, batch);
  return attend_batch<float>(call, batch);
}

// Entry b's rows on the tokens from `begin` on.
void add_entry(Batch& batch, kvc* cache, std::int32_t l, std::int32_t slot, std::int64_t row,
               std::int64_t rows, std::int64_t begin, std::int64_t nodes) {
  const Layer& layer = cache->layer(slot, l);
  Item item{};
  item.end = layer.length;
  item.prefix = layer.length - nodes;
  item.begin = begin;
  const kvc_config& c = cache->c;
  // Without sinks nothing before the first row's window is seen.
  if (c.window > 0 && c.sinks == 0 && nodes == 0)
    item.begin = std::max(begin, layer.length - rows - c.window + 1);
  item.begin = std::min(item.begin, item.end);
  item.pages = std::ssize(batch.pages);
  item.row = row;
  item.rows = static_cast<std::int32_t>(rows) * (c.n_q / c.n_kv);
  batch.item_of_row.insert(batch.item_of_row.end(), static_cast<std::size_t>(rows),
                           static_cast<std::int32_t>(batch.items.size()));
  batch.items.push_back(item);
  batch.add_pages(layer, layer.length);
}

void add_positions(Batch& batch, std::int64_t length, std::int64_t rows) {
  for (std::int64_t i = 0; i < rows; ++i)
    batch.positions.push_back(static_cast<std::int32_t>(length - rows + i));
}

void add_tree(Batch& batch, std::int64_t prefix, std::int64_t n, const std::int32_t* parent) {
  const std::size_t first = batch.spans.size();
  add_spans(n, parent, batch.spans);
  batch.positions.resize(batch.spans.size());
  std::int32_t* position = batch.positions.data() + first;
  for (std::int64_t i = 0; i < n; ++i)
    position[i] = parent[i] < 0 ? static_cast<std::int32_t>(prefix) : position[parent[i]] + 1;
}

// --- arguments ---

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

// --- growing ---

// The pages that an append makes. Nothing of the cache changes until they are all there.
class Growth {
 public:
  explicit Growth(kvc* cache) : cache_(cache) {}
  ~Growth() {
    for (auto* pages : {&raw_, &packed_}) {
      for (Page* page : *pages) cache_->drop(page);
    }
  }

  bool reserve(const Layer& layer, std::int64_t rows) {
    const std::int64_t after = layer.length + rows;
    if (rows == 0) return true;
    std::int64_t raw = pages_for(after) - pages_for(layer.length) + (replaces_tail(layer) ? 1 : 0);
    while (raw-- > 0) {
      if (!take_new(raw_, false)) return false;
    }
    std::int64_t full = cache_->c.quant != 0 ? after / kPage - layer.length / kPage : 0;
    while (full-- > 0) {
      if (!take_new(packed_, true)) return false;
    }
    return true;
  }

  // Whether the next token goes to a page that cannot be written to as it is.
  static bool replaces_tail(const Layer& layer) {
    return layer.length % kPage != 0 &&
           (layer.pages.back()->holders > 1 || layer.pages.back()->packed);
  }

  // Layers in the order in which they reserved. Pages that have been replaced stay in `replaced`
  // until the work that reads them has been launched.
  void commit(Layer& layer, std::int64_t first_row, std::int64_t rows) {
    if (rows == 0) return;
    const std::int64_t used = layer.length % kPage, first_page = layer.length / kPage;
    entries.push_back({first_row, used, std::ssize(pages)});
    if (replaces_tail(layer)) {
      Page* own = take(raw_);
      copies.push_back({ref(layer.pages.back()), ref(own), used});
      replaced.push_back(layer.pages.back());
      layer.pages.back() = own;
    }
    layer.length += rows;
    while (std::ssize(layer.pages) < pages_for(layer.length)) layer.pages.push_back(take(raw_));
    for (std::int64_t i = first_page; i < std::ssize(layer.pages); ++i) {
      Page*& page = layer.pages[static_cast<std::size_t>(i)];
      pages.push_back(ref(page));
      if (cache_->c.quant == 0 || (i + 1) * kPage > layer.length) continue;
      Page* packed = take(packed_);
      packs.push_back({ref(page), ref(packed)});
      replaced.push_back(page);
      page = packed;
    }
  }

  void drop_replaced() {
    for (Page* page : replaced) cache_->drop(page);
    replaced.clear();
  }

  std::vector<StoreEntry> entries;
  std::vector<PageRef> pages;
  std::vector<CopyJob> copies;
  std::vector<PackJob> packs;
  std::vector<Page*> replaced;

 private:
  bool take_new(std::vector<Page*>& pages, bool packed) {
    Page* page = cache_->new_page(packed);
    if (page != nullptr) pages.push_back(page);
    return page != nullptr;
  }
  static Page* take(std::vector<Page*>& pages) {
    Page* page = pages.back();
    pages.pop_back();
    return page;
  }
  kvc* cache_;
  std::vector<Page*> raw_, packed_;
};

template <class T>
int launch_store(const kvc* cache, const Store& store, std::int64_t work, const Table& table,
                 const Table* packs, std::size_t pack_jobs) {
  constexpr int kBlock = 256;
  store_rows<T>
      <<<static_cast<unsigned>((work * kWarp + kBlock - 1) / kBlock), kBlock, 0, cache->stream()>>>(
          table, store, work);
  if (pack_jobs > 0) {
    const auto blocks = static_cast<unsigned>(pack_jobs) * static_cast<unsigned>(cache->c.n_kv);
    pack_pages<T><<<blocks, 128, 0, cache->stream()>>>(*packs, cache->layout);
  }
  return launch_status();
}

// The sizes of the tables of an append, before there are any pages to write into them.
std::size_t table_bytes(std::size_t entries, std::size_t pages, std::size_t copies) {
  const std::size_t bytes =
      entries * sizeof(StoreEntry) + pages * sizeof(PageRef) + copies * sizeof(CopyJob) + 64;
  return bytes <= kInlineBytes ? 0 : bytes;
}

}  // namespace

extern "C" {

int kvc_create(assay_ctx* ctx, const kvc_config* config, kvc** out) {
  if (ctx == nullptr || config == nullptr || out == nullptr || !valid(*config)) return ASSAY_EINVAL;
  if (config->D > kWidestKey) return ASSAY_ENOTSUP;
  auto* cache = new kvc;
  cache->ctx = ctx;
  cache->c = *config;
  if (config->Dv == 0) cache->c.Dv = config->D;
  cache->layout = layout_of(cache->c);
  cache->sequences.resize(static_cast<std::size_t>(config->max_seqs));
  cache->tokens.resize(static_cast<std::size_t>(config->n_layers));
  *out = cache;
  return ASSAY_OK;
}

void kvc_destroy(kvc* cache) {
  if (cache == nullptr) return;
  for (std::int32_t s = 0; s < cache->c.max_seqs; ++s) {
    if (cache->known(s)) cache->close(s);
  }
  delete cache;
}

int kvc_seq_new(kvc* cache, std::int32_t* slot) {
  if (cache == nullptr || slot == nullptr) return ASSAY_EINVAL;
  if (const int status = cache->free_slot(slot); status != ASSAY_OK) return status;
  cache->sequence(*slot).alive = true;
  cache->sequence(*slot).layers.resize(static_cast<std::size_t>(cache->c.n_layers));
  return ASSAY_OK;
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
  if (const int status = cache->free_slot(dst); status != ASSAY_OK) return status;
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
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  if (k == nullptr || v == nullptr) return ASSAY_EINVAL;
  const kvc_config& c = cache->c;
  if (cache->tokens[static_cast<std::size_t>(layer)] + cu[n] > c.max_tokens) return ASSAY_ECAP;
  std::size_t most_pages = 0, most_copies = 0, most_packs = 0;
  for (std::int32_t b = 0; b < n; ++b) {
    const Layer& to = cache->layer(slots[b], layer);
    const std::int64_t rows = cu[b + 1] - cu[b], after = to.length + rows;
    if (after > c.max_len) return ASSAY_ECAP;
    if (rows == 0) continue;
    most_pages += static_cast<std::size_t>(pages_for(after) - to.length / kPage);
    most_copies += Growth::replaces_tail(to) ? 1 : 0;
    if (c.quant != 0) most_packs += static_cast<std::size_t>(after / kPage - to.length / kPage);
  }
  const Scratch store_table(cache->ctx,
                            table_bytes(static_cast<std::size_t>(n), most_pages, most_copies));
  const std::size_t pack_bytes = most_packs * sizeof(PackJob);
  const Scratch pack_table(cache->ctx, pack_bytes <= kInlineBytes ? 0 : pack_bytes);
  Growth growth(cache);
  bool enough = !store_table.failed() && !pack_table.failed();
  for (std::int32_t b = 0; enough && b < n; ++b)
    enough = growth.reserve(cache->layer(slots[b], layer), cu[b + 1] - cu[b]);
  if (!enough) return ASSAY_ENOMEM;

  for (std::int32_t b = 0; b < n; ++b)
    growth.commit(cache->layer(slots[b], layer), cu[b], cu[b + 1] - cu[b]);
  cache->tokens[static_cast<std::size_t>(layer)] += cu[n];
  Store store{};
  store.layout = cache->layout;
  store.rows = cu[n];
  store.entries = static_cast<std::int32_t>(growth.entries.size());
  store.vector = c.D % 4 == 0 && c.Dv % 4 == 0 && aligned(k) && aligned(v);
  store.k = k;
  store.v = v;
  static thread_local Table table, packs;
  TableBuilder builder;
  store.entry_table = builder.add(growth.entries);
  store.page_table = builder.add(growth.pages);
  store.copy_table = builder.add(growth.copies);
  builder.upload(cache->ctx, store_table, table);
  TableBuilder pack_builder;
  pack_builder.add(growth.packs);
  pack_builder.upload(cache->ctx, pack_table, packs);
  const std::int64_t work = store.rows + std::ssize(growth.copies) * kPage;
  const auto launch = c.dtype == ASSAY_F32 ? launch_store<float> : launch_store<__nv_bfloat16>;
  const int stored = launch(cache, store, work, table, &packs, growth.packs.size());
  growth.drop_replaced();
  for (std::int32_t b = 0; b < n; ++b) {
    Layer& to = cache->layer(slots[b], layer);
    cache->release_old(to, cu[b + 1] - cu[b]);
  }
  return stored;
}

int kvc_attend(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
               const std::int64_t* cu, const void* q, float scale, void* o, float* lse) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  if (q == nullptr || o == nullptr) return ASSAY_EINVAL;
  Batch batch;
  for (std::int32_t b = 0; b < n; ++b) {
    const std::int64_t rows = cu[b + 1] - cu[b];
    if (rows == 0) continue;
    add_entry(batch, cache, layer, slots[b], cu[b], rows, 0, 0);
    add_positions(batch, cache->layer(slots[b], layer).length, rows);
  }
  return run_attention({cache, q, scale, o, lse}, batch);
}

int kvc_attend_tree(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                    const std::int64_t* cu, const std::int32_t* parent, const void* q, float scale,
                    void* o, float* lse) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  if (parent == nullptr || q == nullptr || o == nullptr) return ASSAY_EINVAL;
  Batch batch;
  for (std::int32_t b = 0; b < n; ++b) {
    const std::int64_t rows = cu[b + 1] - cu[b], length = cache->layer(slots[b], layer).length;
    if (rows > length) return ASSAY_EINVAL;
    for (std::int64_t i = 0; i < rows; ++i) {
      if (parent[cu[b] + i] < -1 || parent[cu[b] + i] >= i) return ASSAY_EINVAL;
    }
    if (rows == 0) continue;
    add_entry(batch, cache, layer, slots[b], cu[b], rows, 0, rows);
    add_tree(batch, length - rows, rows, parent + cu[b]);
  }
  return run_attention({cache, q, scale, o, lse}, batch);
}

int kvc_attend_shared(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                      const std::int64_t* cu, std::int64_t shared, const void* q, float scale,
                      void* o, float* lse) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK) return status;
  if (shared < 0) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < n; ++b) {
    if (shared > cache->layer(slots[b], layer).length) return ASSAY_EINVAL;
  }
  // A window may have taken from one what another still sees.
  if (n == 0 || cu[n] == 0 || shared == 0 || cache->c.window > 0)
    return kvc_attend(cache, layer, n, slots, cu, q, scale, o, lse);
  if (q == nullptr || o == nullptr) return ASSAY_EINVAL;
  Batch batch;
  batch.shared = true;
  Item common{};
  common.end = common.prefix = shared;
  common.rows = static_cast<std::int32_t>(cu[n]) * (cache->c.n_q / cache->c.n_kv);
  batch.items.push_back(common);
  batch.add_pages(cache->layer(slots[0], layer), shared);
  for (std::int32_t b = 0; b < n; ++b) {
    const std::int64_t rows = cu[b + 1] - cu[b];
    if (rows == 0) continue;
    add_entry(batch, cache, layer, slots[b], cu[b], rows, shared, 0);
    add_positions(batch, cache->layer(slots[b], layer).length, rows);
  }
  return run_attention({cache, q, scale, o, lse}, batch);
}

// A page that no sequence holds goes back at once, so there is never anything left over.
int kvc_defragment(kvc* cache) { return cache == nullptr ? ASSAY_EINVAL : ASSAY_OK; }

std::int64_t kvc_len(kvc* cache, std::int32_t layer, std::int32_t slot) {
  if (cache == nullptr || layer < 0 || layer >= cache->c.n_layers || !cache->known(slot)) return -1;
  return cache->layer(slot, layer).length;
}

int kvc_bytes(kvc* cache, std::int64_t* live, std::int64_t* reserved) {
  if (cache == nullptr || live == nullptr || reserved == nullptr) return ASSAY_EINVAL;
  *live = *reserved = cache->held;
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
  std::vector<PageRef> pages;
  for (std::int64_t i = t0 / kPage; i < pages_for(t1); ++i)
    pages.push_back(ref(from.pages[static_cast<std::size_t>(i)]));
  TableBuilder builder;
  builder.add(pages);
  const Scratch scratch(cache->ctx, builder.scratch_bytes());
  if (scratch.failed()) return ASSAY_ENOMEM;
  static thread_local Table table;
  builder.upload(cache->ctx, scratch, table);
  const Read read{cache->layout, t0 % kPage, t1 - t0, k, v};
  constexpr int kBlock = 256;
  const auto blocks = static_cast<unsigned>((read.rows * kWarp + kBlock - 1) / kBlock);
  if (cache->c.dtype == ASSAY_F32) {
    read_rows<float><<<blocks, kBlock, 0, cache->stream()>>>(table, read);
  } else {
    read_rows<__nv_bfloat16><<<blocks, kBlock, 0, cache->stream()>>>(table, read);
  }
  return launch_status();
}

}  // extern "C"
