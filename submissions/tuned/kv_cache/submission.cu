// Sample entrant of assay, not a model's answer. A layer of a sequence is a list of pages of 32
// tokens; forks share pages, who writes to a shared one copies it first, and one that nobody holds
// goes back at once. The list, lengths and holders stay on the host, and travel as parameters of a
// launch, 4 bytes a page. Attention is flash-decoding: chunks of a sequence go to different blocks,
// and a second launch merges them. A row is a query head of a query; rows of one key head share
// what is read. Few rows, up to 8 a block: 8 to 32 lanes share a key, so that a page is one round
// of the block, and each such group of lanes has an online softmax of its own, merged in shared
// memory. Many rows: tiles of 64 rows by 64 keys in shared memory, 16 scores a thread. Supports
// bf16, values of another width, windows, sinks, trees, shared prefixes and defragmentation; no
// quantisation.
#include <cuda_bf16.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "abi.h"

namespace {

constexpr int kWarp = 32, kThreads = 128;
constexpr int kPage = 32;                 // tokens
constexpr int kAlign = 256;               // of pages, bytes
constexpr std::uint32_t kReleased = ~0u;  // in place of a page that no row can see
constexpr std::int64_t kMostWidth = 512;  // elements of a head

std::int64_t divide_up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }
std::int64_t round_up(std::int64_t n, std::int64_t unit) { return divide_up(n, unit) * unit; }

struct Page {
  void* data;  // device memory
  std::int64_t holders;
};

struct Layer {
  std::int64_t length = 0;
  std::int64_t longest = 0;    // since it was empty
  std::int64_t last_rows = 0;  // of the last append
  std::int64_t released = 0;   // pages before this one, but for sinks, are null
  std::vector<Page*> pages;
};

struct Sequence {
  bool alive = false;
  std::vector<Layer> layers;
};

// How heads lie in a page: keys [n_kv, 32, k_width], then values [n_kv, 32, v_width]. Widths are
// multiples of four elements, filled up with 0.
struct Layout {
  std::int32_t n_q, n_kv, D, Dv, k_width, v_width;
  __host__ __device__ std::int64_t values() const { return std::int64_t{n_kv} * kPage * k_width; }
};

}  // namespace

struct kvc {
  assay_ctx* ctx = nullptr;
  kvc_config c{};
  Layout layout{};
  std::int64_t page_bytes = 0, pages = 0;
  std::vector<Sequence> sequences;

  cudaStream_t stream() const { return static_cast<cudaStream_t>(ctx->stream); }

  // NULL when there is no memory.
  Page* new_page() {
    void* data = ctx->alloc(ctx, static_cast<std::size_t>(page_bytes), kAlign, 1);
    if (data == nullptr) return nullptr;
    ++pages;
    return new Page{data, 1};
  }
  void drop(Page* page) {
    if (page == nullptr || --page->holders > 0) return;
    ctx->free(ctx, page->data);
    delete page;
    --pages;
  }

  bool known(std::int32_t slot) const {
    return slot >= 0 && slot < c.max_seqs && sequences[static_cast<std::size_t>(slot)].alive;
  }
  Layer& layer(std::int32_t slot, std::int32_t l) {
    return sequences[static_cast<std::size_t>(slot)].layers[static_cast<std::size_t>(l)];
  }
  std::int64_t tokens(std::int32_t l) const {
    std::int64_t sum = 0;
    for (const Sequence& s : sequences) {
      if (s.alive) sum += s.layers[static_cast<std::size_t>(l)].length;
    }
    return sum;
  }

  void truncate(Layer& layer, std::int64_t length) {
    layer.length = std::min(layer.length, length);
    const auto needed = static_cast<std::size_t>(divide_up(layer.length, kPage));
    for (; layer.pages.size() > needed; layer.pages.pop_back()) drop(layer.pages.back());
    if (layer.length == 0) layer.longest = layer.last_rows = layer.released = 0;
  }

  // Gives back pages that no row can see any more: a truncation may go KVC_ROLLBACK below the
  // longest, and the rows of a batch stand further below.
  void release(Layer& layer) {
    if (c.window < 0) return;
    const std::int64_t rows = std::max<std::int64_t>(layer.last_rows, KVC_ROLLBACK);
    const std::int64_t first = layer.longest - KVC_ROLLBACK - rows - c.window;
    for (; (layer.released + 1) * kPage <= first; ++layer.released) {
      if (layer.released * kPage < c.sinks) continue;
      Page*& page = layer.pages[static_cast<std::size_t>(layer.released)];
      drop(page);
      page = nullptr;
    }
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
    for (Layer& l : sequence.layers) truncate(l, 0);
    sequence = {};
  }
};

namespace {

int launch_status() { return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL; }

// Scratch on the device that goes back when it leaves its scope.
class Scratch {
 public:
  Scratch(assay_ctx* ctx, std::int64_t bytes)
      : ctx_(ctx),
        data_(bytes > 0 ? ctx->alloc(ctx, static_cast<std::size_t>(bytes), kAlign, 1) : nullptr),
        failed_(bytes > 0 && data_ == nullptr) {}
  ~Scratch() {
    if (data_ != nullptr) ctx_->free(ctx_, data_);
  }
  Scratch(const Scratch&) = delete;
  bool failed() const { return failed_; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  assay_ctx* ctx_;
  void* data_;
  bool failed_;
};

// --- tables: what the host knows and a kernel needs ---

// An entry of a batch.
struct Entry {
  std::uint32_t row, rows;  // its first row, their number
  std::uint32_t start;      // length of the layer, or the first token that is moved
  std::uint32_t pages;      // where its pages are in the table, in units of 256 bytes above `base`
  std::uint32_t tree;       // where its tree is in the table: depths [rows], bits of ancestors
                            // [rows, words of a row]
};
constexpr int kEntryWords = sizeof(Entry) / sizeof(std::uint32_t);

// Entries, pages, trees: in the launch's parameters if they fit.
template <int kInline>
struct Table {
  const std::uint32_t* device;  // null: they are here
  const unsigned char* base;
  std::int32_t n;  // entries
  std::uint32_t here[kInline];

  __device__ std::uint32_t operator[](std::int64_t i) const {
    return device != nullptr ? device[i] : here[i];
  }
  __device__ Entry entry(std::int64_t b) const {
    const std::int64_t at = b * kEntryWords;
    return {(*this)[at], (*this)[at + 1], (*this)[at + 2], (*this)[at + 3], (*this)[at + 4]};
  }
  __device__ std::int32_t entry_of_row(std::uint32_t row) const {
    std::int32_t low = 0, high = n;
    while (high - low > 1) {
      const std::int32_t middle = low + (high - low) / 2;
      ((*this)[std::int64_t{middle} * kEntryWords] <= row ? low : high) = middle;
    }
    return low;
  }
};

class TableBuilder {
 public:
  // Entries without rows are left out: then a row is in the last entry that begins at or before it.
  void add(std::int64_t row, std::int64_t rows, std::int64_t start, const Layer& layer,
           std::int64_t first_page, std::int64_t end_page, std::uint32_t tree = 0) {
    const auto word = [](std::int64_t x) { return static_cast<std::uint32_t>(x); };
    entries_.push_back({word(row), word(rows), word(start), word(std::ssize(pages_)), tree});
    for (std::int64_t p = first_page; p < end_page; ++p) {
      const Page* page = layer.pages[static_cast<std::size_t>(p)];
      pages_.push_back(page == nullptr ? nullptr : static_cast<unsigned char*>(page->data));
    }
  }
  std::uint32_t add_tree(std::int64_t rows, const std::int32_t* parent) {
    const auto at = static_cast<std::uint32_t>(trees_.size());
    const std::int64_t of_row = divide_up(rows, 32);
    trees_.resize(trees_.size() + static_cast<std::size_t>(rows * (1 + of_row)));
    std::uint32_t *depth = trees_.data() + at, *bits = depth + rows;
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t up = parent[i];
      depth[i] = up < 0 ? 0 : depth[up] + 1;
      if (up >= 0) std::copy_n(bits + up * of_row, of_row, bits + i * of_row);
      bits[i * of_row + i / 32] |= 1u << (i % 32);
    }
    return at;
  }
  std::int32_t entries() const { return static_cast<std::int32_t>(entries_.size()); }

  void finish() {
    const auto first_page = static_cast<std::uint32_t>(entries_.size() * kEntryWords);
    const auto first_tree = first_page + static_cast<std::uint32_t>(pages_.size());
    for (const unsigned char* page : pages_) {
      if (page != nullptr && (base_ == nullptr || page < base_)) base_ = page;
    }
    for (const Entry& e : entries_) {
      words_.insert(words_.end(),
                    {e.row, e.rows, e.start, e.pages + first_page, e.tree + first_tree});
    }
    for (const unsigned char* page : pages_) {
      words_.push_back(page == nullptr ? kReleased
                                       : static_cast<std::uint32_t>((page - base_) / kAlign));
    }
    words_.insert(words_.end(), trees_.begin(), trees_.end());
  }
  template <int kInline>
  std::int64_t bytes_outside() const {
    return words_.size() <= kInline ? 0 : std::ssize(words_) * std::int64_t{sizeof words_[0]};
  }
  // `room` holds bytes_outside.
  template <int kInline>
  void deliver(cudaStream_t stream, const Scratch& room, Table<kInline>& table) const {
    table.base = base_;
    table.n = entries();
    table.device = room.as<std::uint32_t>();
    if (table.device == nullptr) {
      std::copy(words_.begin(), words_.end(), table.here);
    } else {
      cudaMemcpyAsync(room.as<void>(), words_.data(), words_.size() * sizeof words_[0],
                      cudaMemcpyHostToDevice, stream);
    }
  }

 private:
  std::vector<Entry> entries_;
  std::vector<const unsigned char*> pages_;
  std::vector<std::uint32_t> trees_, words_;
  const unsigned char* base_ = nullptr;
};

__device__ float widen(float x) { return x; }
__device__ float widen(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ void narrow(float x, float* to) { *to = x; }
__device__ void narrow(float x, __nv_bfloat16* to) { *to = __float2bfloat16(x); }

// --- rows in and out ---

constexpr int kMoveInline = 384;

// Rows into their pages (kStore) or back. A block for each row, a warp for each head.
template <class T, bool kStore>
__global__ void __launch_bounds__(kThreads)
    move_rows(Layout layout, const __grid_constant__ Table<kMoveInline> table, T* k, T* v) {
  const Entry entry = table.entry(table.entry_of_row(blockIdx.x));
  const std::uint32_t token = entry.start % kPage + (blockIdx.x - entry.row);
  const std::uint32_t place = table[entry.pages + token / kPage];
  T* page =
      reinterpret_cast<T*>(const_cast<unsigned char*>(table.base) + std::int64_t{place} * kAlign);
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = threadIdx.x % kWarp;
  const auto move = [&](T* cached, T* given, int real, int width) {
    for (int head = warp; head < layout.n_kv; head += kThreads / kWarp) {
      T* row = cached + (static_cast<std::int64_t>(head) * kPage + token % kPage) * width;
      T* outside = given + (static_cast<std::int64_t>(blockIdx.x) * layout.n_kv + head) * real;
      for (int d = lane; d < width; d += kWarp) {
        if (kStore) {
          row[d] = d < real ? outside[d] : T(0.0f);
        } else if (d < real) {
          outside[d] = row[d];
        }
      }
    }
  };
  move(page, k, layout.D, layout.k_width);
  move(page + layout.values(), v, layout.Dv, layout.v_width);
}

template <bool kStore>
void launch_move(const kvc* cache, std::int64_t rows, const Table<kMoveInline>& table, void* k,
                 void* v) {
  const auto grid = static_cast<unsigned>(rows);
  if (cache->c.dtype == ASSAY_F32) {
    move_rows<float, kStore><<<grid, kThreads, 0, cache->stream()>>>(
        cache->layout, table, static_cast<float*>(k), static_cast<float*>(v));
  } else {
    move_rows<__nv_bfloat16, kStore><<<grid, kThreads, 0, cache->stream()>>>(
        cache->layout, table, static_cast<__nv_bfloat16*>(k), static_cast<__nv_bfloat16*>(v));
  }
}

// --- attention ---

constexpr int kAttendInline = 1536;

struct Attention {
  Layout layout;
  std::int32_t group;          // query heads of a key head
  std::int32_t window, sinks;  // window: -1 none
  bool tree;
  float scale;
  std::int32_t chunk, chunks;  // tokens of a chunk; chunks of the longest entry
  const void* q;
  void* o;
  float* lse;      // or null
  float* partial;  // null: one chunk; [T, n_q, chunks, Dv + 2]: output, maximum, sum
};

// What one row sees.
struct Sight {
  std::int32_t position;  // -1: nothing
  std::int32_t nodes;     // where they begin; a place behind the end unless it is a tree
  std::int64_t bits;      // the row's, in the table

  __device__ Sight(const Attention& a, const Table<kAttendInline>& table, const Entry& entry,
                   int row)
      : nodes(INT_MAX), bits(0) {
    const auto rows = static_cast<std::int32_t>(entry.rows);
    position = static_cast<std::int32_t>(entry.start) - rows + row;
    if (!a.tree) return;
    nodes = static_cast<std::int32_t>(entry.start) - rows;
    position = nodes + static_cast<std::int32_t>(table[entry.tree + row]);
    bits = std::int64_t{entry.tree} + rows + std::int64_t{row} * ((rows + 31) / 32);
  }

  __device__ bool sees(const Attention& a, const Table<kAttendInline>& table, const Entry& entry,
                       std::int32_t j) const {
    if (j >= nodes) {
      const std::int32_t node = j - nodes;
      if ((table[bits + node / 32] >> (node % 32) & 1) == 0) return false;
      j = nodes + static_cast<std::int32_t>(table[entry.tree + node]);
    }
    return j <= position && (a.window < 0 || j > position - a.window || j < a.sinks);
  }
};

template <class T>
struct alignas(4 * sizeof(T)) Four {
  T values[4];
};

// kLanes lanes share a key, each with kVectors times four elements; so a block has 128 / kLanes
// groups of lanes, and each of them takes kKeys tokens of a page. kRows rows.
template <class T, int kLanes, int kVectors, int kRows>
__global__ void __launch_bounds__(kThreads)
    attend(const __grid_constant__ Attention a,
           const __grid_constant__ Table<kAttendInline> table) {
  constexpr int kGroups = kThreads / kLanes, kKeys = kPage / kGroups, kElements = 4 * kVectors;
  constexpr int kWidth = kElements * kLanes;
  __shared__ float outputs[kGroups][kRows][kWidth];
  __shared__ float maxima[kGroups][kRows], sums[kGroups][kRows];
  const Layout& layout = a.layout;
  const Entry entry = table.entry(blockIdx.x / layout.n_kv);
  const int kv = static_cast<int>(blockIdx.x) % layout.n_kv;
  const auto length = static_cast<std::int32_t>(entry.start);
  const int rows = static_cast<int>(entry.rows) * a.group,
            top = static_cast<int>(blockIdx.y) * kRows;
  const std::int32_t begin = static_cast<std::int32_t>(blockIdx.z) * a.chunk;
  const std::int32_t end = min(begin + a.chunk, length);
  if (top >= rows || (begin >= end && blockIdx.z > 0)) return;
  const int group = static_cast<int>(threadIdx.x) / kLanes, lane = threadIdx.x % kLanes;
  const auto element = [lane](int v) { return (v * kLanes + lane) * 4; };
  // Where row r stands in q, o and lse.
  const auto place = [&](int r) {
    return (std::int64_t{entry.row} + (top + r) / a.group) * layout.n_q + kv * a.group +
           (top + r) % a.group;
  };

  float q[kRows][kElements], output[kRows][kElements] = {}, max[kRows], sum[kRows] = {};
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    max[r] = -INFINITY;
    const T* from = static_cast<const T*>(a.q) + (top + r < rows ? place(r) * layout.D : 0);
#pragma unroll
    for (int e = 0; e < kElements; ++e) {
      const int d = element(e / 4) + e % 4;
      q[r][e] = top + r < rows && d < layout.D ? widen(from[d]) : 0.0f;
    }
  }
  const auto load = [&](const T* row, int width, bool exists, float* x) {
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      Four<T> four{};
      if (exists && element(v) < width) four = *reinterpret_cast<const Four<T>*>(row + element(v));
#pragma unroll
      for (int i = 0; i < 4; ++i) x[4 * v + i] = widen(four.values[i]);
    }
  };

  for (std::int32_t first = begin; first < end; first += kPage) {
    const std::uint32_t where = table[std::int64_t{entry.pages} + first / kPage];
    if (where == kReleased) continue;
    const T* page = reinterpret_cast<const T*>(table.base + std::int64_t{where} * kAlign);
    const T* keys = page + std::int64_t{kv} * kPage * layout.k_width;
    const T* values = page + layout.values() + std::int64_t{kv} * kPage * layout.v_width;
    float score[kKeys][kRows];
#pragma unroll
    for (int u = 0; u < kKeys; ++u) {
      const int t = u * kGroups + group;
      float key[kElements];
      load(keys + t * layout.k_width, layout.k_width, first + t < end, key);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        score[u][r] = 0;
#pragma unroll
        for (int e = 0; e < kElements; ++e) score[u][r] = fmaf(q[r][e], key[e], score[u][r]);
      }
    }
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const Sight sight(a, table, entry, min(top + r, rows - 1) / a.group);
      float largest = max[r];
#pragma unroll
      for (int u = 0; u < kKeys; ++u) {
        float& s = score[u][r];
#pragma unroll
        for (int offset = kLanes / 2; offset > 0; offset /= 2) s += __shfl_xor_sync(~0u, s, offset);
        const std::int32_t j = first + u * kGroups + group;
        s = j < end && sight.sees(a, table, entry, j) ? s * a.scale : -INFINITY;
        largest = fmaxf(largest, s);
      }
      const float base = largest == -INFINITY ? 0.0f : largest;  // it has seen nothing yet
      const float keep = expf(max[r] - base);
      max[r] = largest;
      sum[r] *= keep;
#pragma unroll
      for (float& x : output[r]) x *= keep;
#pragma unroll
      for (int u = 0; u < kKeys; ++u) {
        score[u][r] = expf(score[u][r] - base);
        sum[r] += score[u][r];
      }
    }
#pragma unroll
    for (int u = 0; u < kKeys; ++u) {
      const int t = u * kGroups + group;
      float value[kElements];
      load(values + t * layout.v_width, layout.v_width, first + t < end, value);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
#pragma unroll
        for (int e = 0; e < kElements; ++e)
          output[r][e] = fmaf(score[u][r], value[e], output[r][e]);
      }
    }
  }

  // The groups of lanes become one.
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    if (lane == 0) {
      maxima[group][r] = max[r];
      sums[group][r] = sum[r];
    }
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      *reinterpret_cast<float4*>(&outputs[group][r][element(v)]) = make_float4(
          output[r][4 * v], output[r][4 * v + 1], output[r][4 * v + 2], output[r][4 * v + 3]);
    }
  }
  __syncthreads();
  for (int r = 0; r < kRows && top + r < rows; ++r) {
    float largest = -INFINITY, total = 0, weight[kGroups];
#pragma unroll
    for (int g = 0; g < kGroups; ++g) largest = fmaxf(largest, maxima[g][r]);
#pragma unroll
    for (int g = 0; g < kGroups; ++g) {
      weight[g] = largest == -INFINITY ? 0.0f : expf(maxima[g][r] - largest);
      total += weight[g] * sums[g][r];
    }
    const std::int64_t at = place(r);
    float* part = a.partial + (at * a.chunks + blockIdx.z) * (layout.Dv + 2);
    for (int d = threadIdx.x; d < layout.Dv; d += kThreads) {
      float x = 0;
#pragma unroll
      for (int g = 0; g < kGroups; ++g) x = fmaf(weight[g], outputs[g][r][d], x);
      if (a.partial != nullptr) {
        part[d] = x;
      } else {
        narrow(total > 0 ? x / total : 0.0f, static_cast<T*>(a.o) + at * layout.Dv + d);
      }
    }
    if (threadIdx.x != 0) continue;
    if (a.partial != nullptr) {
      part[layout.Dv] = largest;
      part[layout.Dv + 1] = total;
    } else if (a.lse != nullptr) {
      a.lse[at] = total > 0 ? largest + logf(total) : -INFINITY;
    }
  }
}

// --- attention of many rows ---

constexpr int kTile = 64, kSide = 16, kTileThreads = kSide * kSide, kSub = kTile / kSide;

template <int D>
struct Tile {
  float4 q[kTile][D / 4 + 1];
  float4 kv[kTile][D / 4 + 1];     // keys, then values of the same tokens
  float4 p[kTile][kTile / 4 + 1];  // weights relative to the running maximum
  std::uint64_t sees[kTile];       // the tokens of the tile that each row sees
};

__device__ float dot(float4 a, float4 b, float sum) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

// The running softmax of a thread's four rows. Its columns of the output: vectors of four, 64
// apart. The sum is over the thread's own keys.
template <int D>
struct Online {
  static constexpr int kColumns = D / kSide;
  float max[kSub], sum[kSub], output[kSub][kColumns];

  __device__ static int column(int c) {
    return c / 4 * kTile + static_cast<int>(threadIdx.x) % kSide * 4 + c % 4;
  }
};

template <int D>
__device__ void add_scores(Tile<D>& s, Online<D>& state, float scale) {
  const int tx = threadIdx.x % kSide, ty = static_cast<int>(threadIdx.x) / kSide;
  float score[kSub][kSub] = {};  // of the keys tx + 16 c
#pragma unroll 4
  for (int d = 0; d < D / 4; ++d) {
    float4 key[kSub];
#pragma unroll
    for (int c = 0; c < kSub; ++c) key[c] = s.kv[tx + kSide * c][d];
#pragma unroll
    for (int r = 0; r < kSub; ++r) {
      const float4 query = s.q[ty * kSub + r][d];
#pragma unroll
      for (int c = 0; c < kSub; ++c) score[r][c] = dot(query, key[c], score[r][c]);
    }
  }
#pragma unroll
  for (int r = 0; r < kSub; ++r) {
    const std::uint64_t sees = s.sees[ty * kSub + r] >> tx;
    float largest = state.max[r];
#pragma unroll
    for (int c = 0; c < kSub; ++c) {
      score[r][c] = (sees >> (kSide * c) & 1) != 0 ? score[r][c] * scale : -INFINITY;
      largest = fmaxf(largest, score[r][c]);
    }
    for (int offset = kSide / 2; offset > 0; offset /= 2)
      largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, offset));
    const float base = largest == -INFINITY ? 0.0f : largest;  // it has seen nothing yet
    const float keep = expf(state.max[r] - base);
    state.max[r] = largest;
    state.sum[r] *= keep;
#pragma unroll
    for (float& x : state.output[r]) x *= keep;
    auto* weights = reinterpret_cast<float*>(s.p[ty * kSub + r]);
#pragma unroll
    for (int c = 0; c < kSub; ++c) {
      const float weight = expf(score[r][c] - base);
      weights[tx + kSide * c] = weight;
      state.sum[r] += weight;
    }
  }
}

template <int D>
__device__ void add_values(const Tile<D>& s, Online<D>& state) {
  const int tx = threadIdx.x % kSide, ty = static_cast<int>(threadIdx.x) / kSide;
#pragma unroll 2
  for (int j = 0; j < kTile; j += 4) {
    float4 p[kSub];
#pragma unroll
    for (int r = 0; r < kSub; ++r) p[r] = s.p[ty * kSub + r][j / 4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int c = 0; c < Online<D>::kColumns; c += 4) {
        const float4 value = s.kv[j + i][c / 4 * kSide + tx];
#pragma unroll
        for (int r = 0; r < kSub; ++r) {
          const float weight = i == 0 ? p[r].x : i == 1 ? p[r].y : i == 2 ? p[r].z : p[r].w;
          float* output = state.output[r] + c;
          output[0] = fmaf(weight, value.x, output[0]);
          output[1] = fmaf(weight, value.y, output[1]);
          output[2] = fmaf(weight, value.z, output[2]);
          output[3] = fmaf(weight, value.w, output[3]);
        }
      }
    }
  }
}

// What the rows of a tile see of the 64 tokens from `first` on, of which those up to `end` exist.
template <int D>
__device__ void mark_seen(Tile<D>& s, const Attention& a, const Table<kAttendInline>& table,
                          const Entry& entry, int top, int rows, std::int32_t first,
                          std::int32_t end) {
  const auto all_rows = static_cast<std::int32_t>(entry.rows);
  const std::int32_t lowest = static_cast<std::int32_t>(entry.start) - all_rows + top / a.group;
  if (!a.tree && a.window < 0 && first + kTile <= end && first + kTile - 1 <= lowest) {
    if (threadIdx.x < kTile) s.sees[threadIdx.x] = ~std::uint64_t{0};
    return;
  }
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = threadIdx.x % kWarp;
  for (int r = warp; r < kTile; r += kTileThreads / kWarp) {
    const Sight sight(a, table, entry, min(top + r, rows - 1) / a.group);
    const auto sees = [&](std::int32_t j) {
      return __ballot_sync(~0u, j < end && sight.sees(a, table, entry, j));
    };
    const std::uint64_t low = sees(first + lane), high = sees(first + kWarp + lane);
    if (lane == 0) s.sees[r] = high << 32 | low;
  }
}

// As attend, for 64 rows a block. D: the width of heads, filled up.
template <class T, int D>
__global__ void __launch_bounds__(kTileThreads)
    attend_tiles(const __grid_constant__ Attention a,
                 const __grid_constant__ Table<kAttendInline> table) {
  extern __shared__ float4 memory[];
  auto& s = *reinterpret_cast<Tile<D>*>(memory);
  const Layout& layout = a.layout;
  const Entry entry = table.entry(blockIdx.x / layout.n_kv);
  const int kv = static_cast<int>(blockIdx.x) % layout.n_kv;
  const auto length = static_cast<std::int32_t>(entry.start);
  const int rows = static_cast<int>(entry.rows) * a.group;
  const int top = static_cast<int>(blockIdx.y) * kTile;
  const std::int32_t begin = static_cast<std::int32_t>(blockIdx.z) * a.chunk;
  const std::int32_t end = min(begin + a.chunk, length);
  if (top >= rows || (begin >= end && blockIdx.z > 0)) return;
  const int tx = threadIdx.x % kSide, ty = static_cast<int>(threadIdx.x) / kSide;
  const auto place = [&](int r) {
    return (std::int64_t{entry.row} + (top + r) / a.group) * layout.n_q + kv * a.group +
           (top + r) % a.group;
  };
  for (int at = threadIdx.x; at < kTile * D; at += kTileThreads) {
    const int r = at / D, d = at % D;
    const bool real = top + r < rows && d < layout.D;
    const T* q = static_cast<const T*>(a.q);
    reinterpret_cast<float*>(s.q[r])[d] = real ? widen(q[place(r) * layout.D + d]) : 0.0f;
  }
  // Tokens from `first` on; those that do not exist, or were given back, are 0.
  const auto load = [&](std::int32_t first, std::int64_t offset, int width) {
    for (int at = threadIdx.x; at < kTile * (D / 4); at += kTileThreads) {
      const int t = at / (D / 4), d = at % (D / 4) * 4;
      Four<T> four{};
      if (first + t < end && d < width) {
        const std::uint32_t where = table[std::int64_t{entry.pages} + (first + t) / kPage];
        if (where != kReleased) {
          const T* page = reinterpret_cast<const T*>(table.base + std::int64_t{where} * kAlign);
          four = *reinterpret_cast<const Four<T>*>(page + offset +
                                                   (kv * kPage + t % kPage) * width + d);
        }
      }
      s.kv[t][d / 4] = make_float4(widen(four.values[0]), widen(four.values[1]),
                                   widen(four.values[2]), widen(four.values[3]));
    }
  };
  Online<D> state;
  for (int r = 0; r < kSub; ++r) {
    state.max[r] = -INFINITY;
    state.sum[r] = 0;
    for (float& x : state.output[r]) x = 0;
  }
  // Nobody sees what comes after the last row.
  const int last_row = (min(top + kTile, rows) - 1) / a.group;
  const std::int32_t seen =
      a.tree ? end : min(end, length - static_cast<std::int32_t>(entry.rows) + last_row + 1);
  for (std::int32_t first = begin; first < seen; first += kTile) {
    __syncthreads();  // the values before have been used
    mark_seen(s, a, table, entry, top, rows, first, end);
    load(first, 0, layout.k_width);
    __syncthreads();
    add_scores(s, state, a.scale);
    __syncthreads();
    load(first, layout.values(), layout.v_width);
    __syncthreads();
    add_values(s, state);
  }

  for (int r = 0; r < kSub; ++r) {
    float sum = state.sum[r];
    for (int offset = kSide / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
    if (top + ty * kSub + r >= rows) continue;
    const std::int64_t at = place(ty * kSub + r);
    float* part = a.partial + (at * a.chunks + blockIdx.z) * (layout.Dv + 2);
    for (int c = 0; c < Online<D>::kColumns; ++c) {
      const int d = Online<D>::column(c);
      if (d >= layout.Dv) continue;
      if (a.partial != nullptr) {
        part[d] = state.output[r][c];
      } else {
        const float x = sum > 0 ? state.output[r][c] / sum : 0.0f;
        narrow(x, static_cast<T*>(a.o) + at * layout.Dv + d);
      }
    }
    if (tx != 0) continue;
    if (a.partial != nullptr) {
      part[layout.Dv] = state.max[r];
      part[layout.Dv + 1] = sum;
    } else if (a.lse != nullptr) {
      a.lse[at] = sum > 0 ? state.max[r] + logf(sum) : -INFINITY;
    }
  }
}

// --- chunks ---

constexpr int kMergeInline = 384;

// A warp for each row and query head: its chunks become one.
template <class T>
__global__ void __launch_bounds__(kThreads)
    merge_chunks(const __grid_constant__ Attention a, std::int64_t rows,
                 const __grid_constant__ Table<kMergeInline> table) {
  const int lane = threadIdx.x % kWarp, Dv = a.layout.Dv;
  const std::int64_t at =
      static_cast<std::int64_t>(blockIdx.x) * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (at >= rows) return;
  const Entry entry =
      table.entry(table.entry_of_row(static_cast<std::uint32_t>(at / a.layout.n_q)));
  const int chunks = max(1, (static_cast<int>(entry.start) + a.chunk - 1) / a.chunk);
  const float* parts = a.partial + at * a.chunks * (Dv + 2);
  float largest = -INFINITY, total = 0;
  for (int c = 0; c < chunks; ++c) largest = fmaxf(largest, parts[c * (Dv + 2) + Dv]);
  const float base = largest == -INFINITY ? 0.0f : largest;
  for (int c = 0; c < chunks; ++c)
    total += expf(parts[c * (Dv + 2) + Dv] - base) * parts[c * (Dv + 2) + Dv + 1];
  for (int d = lane; d < Dv; d += kWarp) {
    float x = 0;
    for (int c = 0; c < chunks; ++c)
      x += expf(parts[c * (Dv + 2) + Dv] - base) * parts[c * (Dv + 2) + d];
    narrow(total > 0 ? x / total : 0.0f, static_cast<T*>(a.o) + at * Dv + d);
  }
  if (lane == 0 && a.lse != nullptr) a.lse[at] = total > 0 ? base + logf(total) : -INFINITY;
}

using Kernel = void (*)(Attention, Table<kAttendInline>);

struct Choice {
  Kernel kernel;
  int rows;  // of a block
  int threads = kThreads;
  int shared_bytes = 0;
};

// The kernel for heads of this width, and for entries of at most so many rows.
template <class T>
Choice choose(std::int64_t width, std::int64_t rows) {
  if (rows > 16 && width > 32 && width <= 128) {
    return width <= 64 ? Choice{&attend_tiles<T, 64>, kTile, kTileThreads, sizeof(Tile<64>)}
                       : Choice{&attend_tiles<T, 128>, kTile, kTileThreads, sizeof(Tile<128>)};
  }
  if (width <= 32) return {&attend<T, 8, 1, 4>, 4};
  if (width <= 64) {
    if (rows == 1) return {&attend<T, 16, 1, 1>, 1};
    return rows <= 4 ? Choice{&attend<T, 16, 1, 4>, 4} : Choice{&attend<T, 16, 1, 8>, 8};
  }
  if (width <= 128)
    return rows == 1 ? Choice{&attend<T, 16, 2, 1>, 1} : Choice{&attend<T, 16, 2, 4>, 4};
  return width <= 256 ? Choice{&attend<T, 32, 2, 4>, 4} : Choice{&attend<T, 32, 4, 2>, 2};
}

struct Batch {
  std::int64_t T;              // rows
  std::int64_t most_rows = 0;  // of an entry
  std::int64_t longest = 0, all_tokens = 0;
  TableBuilder builder, lengths;
};

template <class T>
int run_attention(kvc* cache, Attention a, const Batch& batch) {
  const Layout& layout = cache->layout;
  const std::int64_t width = std::max(layout.k_width, layout.v_width);
  const Choice choice = choose<T>(width, batch.most_rows * a.group);
  const std::int64_t tops = divide_up(batch.most_rows * a.group, choice.rows);
  // Two small blocks or one large one for each multiprocessor, and no chunk below 128 tokens.
  int multiprocessors = 1;
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, cache->ctx->device);
  const std::int64_t blocks = choice.rows == kTile ? multiprocessors : 2 * multiprocessors;
  const std::int64_t work = batch.all_tokens * layout.n_kv * tops;
  const std::int64_t chunk = std::max<std::int64_t>(divide_up(work, blocks), 2 * kTile);
  a.chunk = static_cast<std::int32_t>(round_up(chunk, kTile));
  a.chunks =
      static_cast<std::int32_t>(std::max<std::int64_t>(divide_up(batch.longest, a.chunk), 1));
  const std::int64_t rows = batch.T * layout.n_q;
  const std::int64_t floats = a.chunks > 1 ? rows * a.chunks * (layout.Dv + 2) : 0;
  const Scratch parts(cache->ctx, floats * std::int64_t{sizeof(float)});
  const Scratch room(cache->ctx, batch.builder.bytes_outside<kAttendInline>());
  const Scratch room_of_lengths(cache->ctx,
                                floats > 0 ? batch.lengths.bytes_outside<kMergeInline>() : 0);
  if (parts.failed() || room.failed() || room_of_lengths.failed()) return ASSAY_ENOMEM;
  a.partial = parts.as<float>();
  Table<kAttendInline> table{};
  batch.builder.deliver(cache->stream(), room, table);
  const dim3 grid(static_cast<unsigned>(batch.builder.entries() * layout.n_kv),
                  static_cast<unsigned>(tops), static_cast<unsigned>(a.chunks));
  cudaFuncSetAttribute(choice.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                       choice.shared_bytes);
  choice.kernel<<<grid, choice.threads, static_cast<std::size_t>(choice.shared_bytes),
                  cache->stream()>>>(a, table);
  if (floats > 0) {
    Table<kMergeInline> lengths{};
    batch.lengths.deliver(cache->stream(), room_of_lengths, lengths);
    const auto blocks = static_cast<unsigned>(divide_up(rows, kThreads / kWarp));
    merge_chunks<T><<<blocks, kThreads, 0, cache->stream()>>>(a, rows, lengths);
  }
  return launch_status();
}

// --- what is legal ---

int check_batch(const kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                const std::int64_t* cu) {
  if (cache == nullptr || layer < 0 || layer >= cache->c.n_layers || n < 0) return ASSAY_EINVAL;
  if (n == 0) return ASSAY_OK;
  if (slots == nullptr || cu == nullptr || cu[0] != 0) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < n; ++b) {
    if (cu[b + 1] < cu[b]) return ASSAY_EINVAL;
    if (!cache->known(slots[b])) return ASSAY_ESTATE;
    if (std::find(slots, slots + b, slots[b]) != slots + b) return ASSAY_EINVAL;
  }
  return ASSAY_OK;
}

// parent: of trees, or null.
int attend_batch(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                 const std::int64_t* cu, const std::int32_t* parent, const void* q, float scale,
                 void* o, float* lse) {
  if (n == 0 || cu[n] == 0) return ASSAY_OK;
  if (q == nullptr || o == nullptr) return ASSAY_EINVAL;
  Batch batch{.T = cu[n]};
  for (std::int32_t b = 0; b < n; ++b) {
    const std::int64_t rows = cu[b + 1] - cu[b];
    if (rows == 0) continue;
    const Layer& history = cache->layer(slots[b], layer);
    const std::uint32_t tree = parent != nullptr ? batch.builder.add_tree(rows, parent + cu[b]) : 0;
    batch.builder.add(cu[b], rows, history.length, history, 0, std::ssize(history.pages), tree);
    batch.lengths.add(cu[b], rows, history.length, history, 0, 0);
    batch.most_rows = std::max(batch.most_rows, rows);
    batch.longest = std::max(batch.longest, history.length);
    batch.all_tokens += history.length;
  }
  batch.builder.finish();
  batch.lengths.finish();
  const kvc_config& c = cache->c;
  const Attention a{.layout = cache->layout,
                    .group = c.n_q / c.n_kv,
                    .window = c.window,
                    .sinks = c.sinks,
                    .tree = parent != nullptr,
                    .scale = scale,
                    .chunk = 0,
                    .chunks = 0,
                    .q = q,
                    .o = o,
                    .lse = lse,
                    .partial = nullptr};
  return c.dtype == ASSAY_F32 ? run_attention<float>(cache, a, batch)
                              : run_attention<__nv_bfloat16>(cache, a, batch);
}

// The pages that an append makes. Nothing of the cache changes until they are all there.
class Growth {
 public:
  explicit Growth(kvc* cache) : cache_(cache) {}
  ~Growth() {
    for (Page* page : pages_) cache_->drop(page);
  }
  Growth(const Growth&) = delete;

  bool reserve(const Layer& layer, std::int64_t rows) {
    if (rows == 0) return true;
    std::int64_t needed = divide_up(layer.length + rows, kPage) - divide_up(layer.length, kPage);
    for (needed += shares_tail(layer) ? 1 : 0; needed > 0; --needed) {
      Page* page = cache_->new_page();
      if (page == nullptr) return false;
      pages_.push_back(page);
    }
    return true;
  }

  void commit(Layer& layer, std::int64_t rows) {
    if (rows == 0) return;
    if (shares_tail(layer)) {
      Page* copy = take();
      cudaMemcpyAsync(copy->data, layer.pages.back()->data,
                      static_cast<std::size_t>(cache_->page_bytes), cudaMemcpyDeviceToDevice,
                      cache_->stream());
      cache_->drop(layer.pages.back());
      layer.pages.back() = copy;
    }
    layer.length += rows;
    layer.longest = std::max(layer.longest, layer.length);
    layer.last_rows = rows;
    while (std::ssize(layer.pages) < divide_up(layer.length, kPage)) layer.pages.push_back(take());
  }

 private:
  // Whether the layer's next token goes to a page that others hold as well.
  static bool shares_tail(const Layer& layer) {
    return layer.length % kPage != 0 && layer.pages.back()->holders > 1;
  }
  Page* take() {
    Page* page = pages_.back();
    pages_.pop_back();
    return page;
  }
  kvc* cache_;
  std::vector<Page*> pages_;
};

}  // namespace

extern "C" {

int kvc_create(assay_ctx* ctx, const kvc_config* config, kvc** out) {
  if (ctx == nullptr || config == nullptr || out == nullptr) return ASSAY_EINVAL;
  kvc_config c = *config;
  if (c.size != sizeof(kvc_config) || (c.dtype != ASSAY_F32 && c.dtype != ASSAY_BF16) ||
      c.n_layers < 1 || c.n_q < 1 || c.n_kv < 1 || c.n_q % c.n_kv != 0 || c.D < 1 || c.Dv < 0 ||
      c.max_seqs < 0 || c.max_tokens < 0 || c.max_len < 0 || c.sinks < 0 || c.window == 0 ||
      c.window < -1 || (c.quant != 0 && c.quant != 4 && c.quant != 8))
    return ASSAY_EINVAL;
  if (c.Dv == 0) c.Dv = c.D;
  if (c.quant != 0 || c.D > kMostWidth || c.Dv > kMostWidth) return ASSAY_ENOTSUP;
  auto* cache = new kvc;
  cache->ctx = ctx;
  cache->c = c;
  cache->layout = {c.n_q,
                   c.n_kv,
                   c.D,
                   c.Dv,
                   static_cast<std::int32_t>(round_up(c.D, 4)),
                   static_cast<std::int32_t>(round_up(c.Dv, 4))};
  const Layout& l = cache->layout;
  cache->page_bytes =
      std::int64_t{kPage} * l.n_kv * (l.k_width + l.v_width) * (c.dtype == ASSAY_BF16 ? 2 : 4);
  cache->sequences.resize(static_cast<std::size_t>(c.max_seqs));
  *out = cache;
  return ASSAY_OK;
}

void kvc_destroy(kvc* cache) {
  if (cache == nullptr) return;
  for (std::int32_t s = 0; s < cache->c.max_seqs; ++s) cache->close(s);
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
  std::vector<Layer>& layers = cache->sequences[static_cast<std::size_t>(slot)].layers;
  const auto longer = [new_len](const Layer& l) { return l.length >= new_len; };
  if (std::none_of(layers.begin(), layers.end(), longer)) return ASSAY_ESTATE;
  for (Layer& l : layers) cache->truncate(l, new_len);
  return ASSAY_OK;
}

int kvc_fork(kvc* cache, std::int32_t src, std::int32_t* dst) {
  if (cache == nullptr || dst == nullptr) return ASSAY_EINVAL;
  if (!cache->known(src)) return ASSAY_ESTATE;
  for (std::int32_t l = 0; l < cache->c.n_layers; ++l) {
    if (cache->tokens(l) + cache->layer(src, l).length > cache->c.max_tokens) return ASSAY_ECAP;
  }
  if (const int status = cache->open(dst); status != ASSAY_OK) return status;
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
  if (cache->tokens(layer) + cu[n] > cache->c.max_tokens) return ASSAY_ECAP;
  std::int64_t most_words = 0;
  for (std::int32_t b = 0; b < n; ++b) {
    const std::int64_t rows = cu[b + 1] - cu[b];
    if (cache->layer(slots[b], layer).length + rows > cache->c.max_len) return ASSAY_ECAP;
    if (rows > 0) most_words += kEntryWords + divide_up(rows, kPage) + 1;
  }
  const Scratch room(
      cache->ctx, most_words > kMoveInline ? most_words * std::int64_t{sizeof(std::uint32_t)} : 0);
  if (room.failed()) return ASSAY_ENOMEM;
  Growth growth(cache);
  for (std::int32_t b = 0; b < n; ++b) {
    if (!growth.reserve(cache->layer(slots[b], layer), cu[b + 1] - cu[b])) return ASSAY_ENOMEM;
  }
  // In the order of reservation or not: pages are all alike.
  TableBuilder builder;
  for (std::int32_t b = 0; b < n; ++b) {
    const std::int64_t rows = cu[b + 1] - cu[b];
    if (rows == 0) continue;
    Layer& history = cache->layer(slots[b], layer);
    const std::int64_t start = history.length;
    growth.commit(history, rows);
    builder.add(cu[b], rows, start, history, start / kPage, std::ssize(history.pages));
  }
  builder.finish();
  Table<kMoveInline> table{};
  builder.deliver(cache->stream(), room, table);
  // Storing reads k and v only.
  launch_move<true>(cache, cu[n], table, const_cast<void*>(k), const_cast<void*>(v));
  for (std::int32_t b = 0; b < n; ++b) cache->release(cache->layer(slots[b], layer));
  return launch_status();
}

int kvc_attend(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
               const std::int64_t* cu, const void* q, float scale, void* o, float* lse) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK) return status;
  return attend_batch(cache, layer, n, slots, cu, nullptr, q, scale, o, lse);
}

int kvc_attend_tree(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                    const std::int64_t* cu, const std::int32_t* parent, const void* q, float scale,
                    void* o, float* lse) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK || n == 0 || cu[n] == 0) return status;
  if (parent == nullptr) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < n; ++b) {
    const std::int64_t rows = cu[b + 1] - cu[b];
    if (rows > cache->layer(slots[b], layer).length) return ASSAY_EINVAL;
    for (std::int64_t i = 0; i < rows; ++i) {
      if (parent[cu[b] + i] < -1 || parent[cu[b] + i] >= i) return ASSAY_EINVAL;
    }
  }
  return attend_batch(cache, layer, n, slots, cu, parent, q, scale, o, lse);
}

// The same result as kvc_attend's, and by the same means.
int kvc_attend_shared(kvc* cache, std::int32_t layer, std::int32_t n, const std::int32_t* slots,
                      const std::int64_t* cu, std::int64_t shared, const void* q, float scale,
                      void* o, float* lse) {
  const int status = check_batch(cache, layer, n, slots, cu);
  if (status != ASSAY_OK) return status;
  if (shared < 0) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < n; ++b) {
    if (shared > cache->layer(slots[b], layer).length) return ASSAY_EINVAL;
  }
  return attend_batch(cache, layer, n, slots, cu, nullptr, q, scale, o, lse);
}

std::int64_t kvc_len(kvc* cache, std::int32_t layer, std::int32_t slot) {
  if (cache == nullptr || layer < 0 || layer >= cache->c.n_layers || !cache->known(slot)) return -1;
  return cache->layer(slot, layer).length;
}

int kvc_bytes(kvc* cache, std::int64_t* live, std::int64_t* reserved) {
  if (cache == nullptr || live == nullptr || reserved == nullptr) return ASSAY_EINVAL;
  *live = *reserved = cache->pages * cache->page_bytes;
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
  TableBuilder builder;
  builder.add(0, t1 - t0, t0, from, t0 / kPage, divide_up(t1, kPage));
  builder.finish();
  const Scratch room(cache->ctx, builder.bytes_outside<kMoveInline>());
  if (room.failed()) return ASSAY_ENOMEM;
  Table<kMoveInline> table{};
  builder.deliver(cache->stream(), room, table);
  launch_move<false>(cache, t1 - t0, table, k, v);
  return launch_status();
}

// Pages go back as soon as nobody holds them: there is nothing to do.
int kvc_defragment(kvc* cache) { return cache == nullptr ? ASSAY_EINVAL : ASSAY_OK; }

}  // extern "C"
