// Verification of a draft tree: attention in one launch, acceptance, compaction, and the loop.
//
// The shape. A tree of n nodes, some tens, stands behind a prefix of P tokens, some thousands. With
// Hq query heads on Hkv key heads of D elements, attention reads 2 (P + n) Hkv D floats once and
// does 4 n Hq (P + n) D flops. For P 2048, n 64, 8/8 heads of 64: 8.7 MB, 1.8 us of an H200's
// 4.8 TB/s; 0.28 Gflop, 4.1 us of its 67 Tflop/s of fp32. For P 4096, n 60, 8/2 heads of 128:
// 8.5 MB and 1.0 Gflop. So the CUDA cores are the limit, and the tensor cores move it:
//
// Three products. x = hi + lo, both tf32 (11 bits each, 22 of the 24); hi hi' + hi lo' + lo hi'
// errs by some 2^-22 of each product, what fp32 does anyway. 3 x 0.28 Gflop at 494 Tflop/s are
// 1.7 us, as long as memory takes. Values of bf16 are tf32 as they are: one product for the
// scores, two for the weights (hi and lo) with the values.
//
// Tiles. A block takes 64 rows (query heads of a key head, node by node: all of them read the same
// keys), 16 a warp, and tiles of 32 keys. For 8 columns of the heads, a warp loads 16 x 8 queries
// and 32 x 8 keys by ldmatrix, 4 + 8 passes over shared memory, and does 12 products of
// mma.m16n8k8, 13 clocks: balanced. At D = 128 the output takes 64 registers, scores 16. Keys and
// values have a buffer each: cp.async brings the next keys while the values are multiplied, and
// the next values during the scores. Rows are padded by 4 floats: ldmatrix of keys and the strided
// loads of values both hit 32 different banks. Nothing is replayed, but where nodes have values
// that are not finite: their keys are marked in one word, a lane at a time.
//
// Weights never leave registers. The scores' accumulators hold columns 2t and 2t + 1 of a thread,
// the multiplicand wants t and t + 4: which keys are called t and t + 4 is free, so the values are
// loaded in the order of the accumulators instead of shuffling the weights.
//
// Split (flash-decoding). Blocks of one key head share its keys in chunks; each chunk gives an
// output, a maximum and a sum for each row, which are merged after a barrier of the grid: a
// cooperative launch, since a second launch costs 3 us. More chunks are more SMs and more partial
// results, 8 (D + 2) bytes a row there and back. plan_chunks weighs one against the other.
//
// The tree is no mask. Descendants of a node are an interval of the depth-first order, so node i
// sees node a if order[i] - order[a] < size[a], unsigned: 8 bytes a node, and one subtraction and
// comparison a pair, in the tiles that hold nodes. The prefix and the nodes are one sequence of
// keys.
//
// Tried and rejected, with modelled times of the two shapes: 128 rows a block, 32 a warp. A
// fragment of keys then serves six products instead of three, but 240 rows and 2 heads in 15
// chunks are only 60 blocks, and of 64 rows half of the warps are idle: 12.3 and 25.9 us, where 64
// rows take 8.8 and 17.2.
//
// Considered and rejected: ancestor bits (n^2 / 8 bytes to make and to read, 125 KB for 1,000
// nodes); an upload of the tree (3 us; up to 3.7 KB it comes as a parameter of the launch); two
// terms of fp16 instead of tf32 (twice the rate, but its range is not that of fp32).
#include <cooperative_groups.h>
#include <cuda_bf16.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "abi.h"
#include "common/device.h"
#include "common/tree.h"
#include "common/warp_attention.h"

namespace {

// --- tables: what the host knows and a kernel needs ---

constexpr std::size_t kInlineBytes = 3712;
using Table = InlineTable<kInlineBytes>;
using TableBuilder = InlineTableBuilder<kInlineBytes>;

// --- what is legal ---

bool good_tree(std::int64_t n, const std::int32_t* parent) {
  for (std::int64_t i = 0; i < n; ++i) {
    if (parent == nullptr || parent[i] >= i || parent[i] < -1) return false;
  }
  return true;
}

bool good_offsets(std::int32_t B, const std::int64_t* cu) {
  if (B < 0 || (B > 0 && (cu == nullptr || cu[0] != 0))) return false;
  for (std::int32_t b = 0; b < B; ++b) {
    if (cu[b] > cu[b + 1]) return false;
  }
  return true;
}

bool good_batch(std::int32_t B, const std::int64_t* cu, const std::int32_t* parent) {
  if (!good_offsets(B, cu)) return false;
  for (std::int32_t b = 0; b < B; ++b) {
    const std::int64_t n = cu[b + 1] - cu[b];
    if (n > 0 && (parent == nullptr || !good_tree(n, parent + cu[b]))) return false;
  }
  return true;
}

bool good_prefixes(std::int32_t B, const std::int64_t* P) {
  for (std::int32_t b = 0; b < B; ++b) {
    if (P == nullptr || P[b] < 1) return false;
  }
  return true;
}

std::int64_t most_nodes(std::int32_t B, const std::int64_t* cu) {
  std::int64_t most = 0;
  for (std::int32_t b = 0; b < B; ++b) most = std::max(most, cu[b + 1] - cu[b]);
  return most;
}

// --- masks ---

struct MaskShape {
  std::int32_t B;
  std::int64_t nodes, ldm;
  std::uint32_t P, cu, parent;  // in the table
};

// The item whose nodes contain `node`.
__device__ std::int32_t item_of(const std::int64_t* cu, std::int32_t B, std::int64_t node) {
  std::int32_t low = 0, high = B;
  while (high - low > 1) {
    const std::int32_t middle = (low + high) / 2;
    (cu[middle] <= node ? low : high) = middle;
  }
  return low;
}

// A thread climbs from its node to the root. Ancestors come in descending order, so each word of
// the row is complete, and written, when the climb leaves it.
__global__ void ancestor_bits(const __grid_constant__ Table table, MaskShape m, std::uint64_t* bits,
                              std::int32_t* depth, std::int64_t* pos) {
  const std::int64_t node = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (node >= m.nodes) return;
  const auto* cu = table.at<std::int64_t>(m.cu);
  const std::int32_t b = item_of(cu, m.B, node);
  const auto* parent = table.at<std::int32_t>(m.parent) + cu[b];
  std::uint64_t* row = bits + node * m.ldm;
  std::int64_t at = m.ldm - 1;
  std::uint64_t word = 0;
  std::int32_t levels = 0;
  for (auto a = static_cast<std::int32_t>(node - cu[b]); a >= 0; a = parent[a], ++levels) {
    for (; at > a / 64; --at, word = 0) row[at] = word;
    word |= std::uint64_t{1} << (a % 64);
  }
  for (; at >= 0; --at, word = 0) row[at] = word;
  depth[node] = levels;
  pos[node] = table.at<std::int64_t>(m.P)[b] + levels - 1;
}

// A block for each row, a thread for every 128th element.
__global__ void full_mask(const __grid_constant__ Table table, std::int64_t P, std::int64_t n,
                          std::uint8_t* M) {
  const std::int64_t i = blockIdx.x;
  const auto* span = table.at<Span>(0);
  std::uint8_t* row = M + i * (P + n);
  for (std::int64_t j = threadIdx.x; j < P + n; j += blockDim.x) {
    row[j] = j < P ? i >= P || j <= i : i >= P && span[j - P].holds(span[i - P]);
  }
}

// --- attention: pieces of a tile ---

constexpr int kWarps = 4, kThreads = kWarps * kWarp, kKeys = 32;

// kD: elements of a head in shared memory and registers, at least those of the problem.
template <int kD>
struct Tiling {
  static constexpr int kRows = kWarps * 16;
  static constexpr int kStride = kD + 4;
  static constexpr int kBytes = (kRows + 2 * kKeys) * kStride * int{sizeof(float)};
};

// Copies 4 or 16 bytes in the background, or fills with zeros.
template <int kBytes>
__device__ void copy_async(float* to, const void* from, bool valid) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(to)),
               "l"(__cvta_generic_to_global(from)), "n"(kBytes), "r"(valid ? kBytes : 0)
               : "memory");
}

// Rows of D elements into shared memory, as floats, zeros beyond `rows` and D. row(r) is where row
// r begins; `anywhere` is an address that may be named where nothing is read.
template <int kD, class Row>
__device__ void stage(float* to, int room, int rows, int D, bool vector, const float* anywhere,
                      const Row& row) {
  constexpr int kStride = Tiling<kD>::kStride;
  if (vector) {
    for (int i = threadIdx.x; i < room * (kD / 4); i += kThreads) {
      const int r = i / (kD / 4), d = i % (kD / 4) * 4;
      const bool valid = r < rows && d < D;
      copy_async<16>(to + r * kStride + d, valid ? row(r) + d : anywhere, valid);
    }
    return;
  }
  for (int i = threadIdx.x; i < room * kD; i += kThreads) {
    const int r = i / kD, d = i % kD;
    const bool valid = r < rows && d < D;
    copy_async<4>(to + r * kStride + d, valid ? row(r) + d : anywhere, valid);
  }
}

template <int kD, class Row>
__device__ void stage(float* to, int room, int rows, int D, bool vector, const __nv_bfloat16*,
                      const Row& row) {
  constexpr int kStride = Tiling<kD>::kStride;
  if (vector) {
    for (int i = threadIdx.x; i < room * (kD / 4); i += kThreads) {
      const int r = i / (kD / 4), d = i % (kD / 4) * 4;
      uint2 x{0, 0};
      if (r < rows && d < D) x = *reinterpret_cast<const uint2*>(row(r) + d);
      *reinterpret_cast<float4*>(to + r * kStride + d) =
          make_float4(__uint_as_float(x.x << 16), __uint_as_float(x.x & 0xffff0000),
                      __uint_as_float(x.y << 16), __uint_as_float(x.y & 0xffff0000));
    }
    return;
  }
  for (int i = threadIdx.x; i < room * kD; i += kThreads) {
    const int r = i / kD, d = i % kD;
    to[r * kStride + d] = r < rows && d < D ? __bfloat162float(row(r)[d]) : 0.0f;
  }
}

// The same of a whole tile of floats, `step` elements apart: addresses are sums.
template <int kD, class T>
__device__ void stage_whole(float* to, const T* from, std::int64_t step) {
  constexpr int kQuads = kD / 4, kRowsAtOnce = kThreads / kQuads;
  const int r = threadIdx.x / kQuads, d = threadIdx.x % kQuads * 4;
  float* at = to + r * Tiling<kD>::kStride + d;
  from += r * step + d;
#pragma unroll
  for (int i = 0; i < kKeys / kRowsAtOnce; ++i, from += kRowsAtOnce * step)
    copy_async<16>(at + i * kRowsAtOnce * Tiling<kD>::kStride, from, true);
}

__device__ void put(float* out, float x) { *out = x; }
__device__ void put(__nv_bfloat16* out, float x) { *out = __float2bfloat16(x); }
__device__ void put(float* out, float2 x) { *reinterpret_cast<float2*>(out) = x; }
__device__ void put(__nv_bfloat16* out, float2 x) {
  *reinterpret_cast<__nv_bfloat162*>(out) = __float22bfloat162_rn(x);
}

// --- attention: the kernel ---

// An item of the batch, and the work that it is cut into: for each key head and tile of rows,
// chunks of its keys.
struct Item {
  const void *k, *v;            // [prefix + nodes, Hkv, D]
  std::int64_t prefix, keys;    // keys: prefix and nodes
  std::int64_t node;            // the first, in the batch
  std::int64_t partial;         // the first row of its partial results
  std::int64_t work;            // the first piece of its work
  std::int32_t rows;            // nodes times query heads of a key head
  std::int32_t tiles, chunks;   // tiles of rows; chunks of keys
  std::int64_t keys_per_chunk;  // a multiple of kKeys
};

template <class T>
struct Attention {
  std::int32_t B, Hq, Hkv, group, D;
  float scale;  // times log2 e: weights are powers of 2
  bool vector;  // 16 bytes at a time are aligned, everywhere
  bool split;
  std::int64_t work, nodes;
  std::uint32_t items, spans;  // in the table
  const T* q;
  T* o;
  float* lse;      // or null
  float* partial;  // [rows, D], then [rows] of maximum and sum
  float2* partial_stats;

  __device__ std::int64_t query(const Item& item, std::int32_t kv, std::int32_t row) const {
    return (item.node + row / group) * Hq + kv * group + row % group;
  }
  __device__ std::int64_t partial_row(const Item& item, std::int32_t kv, std::int32_t chunk,
                                      std::int32_t row) const {
    return item.partial + (std::int64_t{kv} * item.chunks + chunk) * item.rows + row;
  }
};

template <class Wanted>
__device__ const Item& find_item(const Item* items, std::int32_t B, std::int64_t at,
                                 const Wanted& first) {
  std::int32_t low = 0, high = B;
  while (high - low > 1) {
    const std::int32_t middle = (low + high) / 2;
    (first(items[middle]) <= at ? low : high) = middle;
  }
  return items[low];
}

template <int kD, class T>
struct ChunkRows : WarpRows<kD, kKeys, sizeof(T) == 2> {
  // Rows that see one of these keys of the tile become NaN.
  __device__ void poison(unsigned keys) {
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int n = 0; n < this->kKeyTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& x = this->p[n][i];
        if ((keys >> (n * 8 + 2 * t + i % 2) & 1) != 0 && x != 0) x = NAN;
      }
    }
  }

  // Calls write(row of the warp, maximum, sum, outputs by tile, index of the first of two).
  template <class Write>
  __device__ void finish(const Write& write) {
    this->add_up_columns();
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      write(h * 8 + static_cast<int>(threadIdx.x) % kWarp / 4, this->max[h], this->sum[h],
            this->out, 2 * h);
    }
  }
};

// Two elements of a row, or one where the row ends.
template <class T>
__device__ void put_pair(T* row, int d, int D, bool vector, float x, float y) {
  if (vector && d + 1 < D) {
    put(row + d, make_float2(x, y));
    return;
  }
  if (d < D) put(row + d, x);
  if (d + 1 < D) put(row + d + 1, y);
}

template <int kD, class T>
__device__ void attend_chunk(const Attention<T>& p, const Item& item, const Span* spans,
                             std::int64_t piece, float* memory) {
  constexpr int kStride = Tiling<kD>::kStride, kRows = Tiling<kD>::kRows;
  float *q = memory, *k = q + kRows * kStride, *v = k + kKeys * kStride;
  __shared__ unsigned not_finite;  // keys of the tile with such values
  const auto chunk = static_cast<std::int32_t>(piece % item.chunks);
  const auto tile = static_cast<std::int32_t>(piece / item.chunks % item.tiles);
  const auto kv = static_cast<std::int32_t>(piece / item.chunks / item.tiles);
  const std::int32_t first_row = tile * kRows, rows = min(item.rows - first_row, kRows);
  const std::int64_t begin = chunk * item.keys_per_chunk;
  const std::int64_t end = min(begin + item.keys_per_chunk, item.keys);
  const std::int64_t step = std::int64_t{p.Hkv} * p.D;
  const T* keys = static_cast<const T*>(item.k) + std::int64_t{kv} * p.D;
  const T* values = static_cast<const T*>(item.v) + std::int64_t{kv} * p.D;
  const auto stage_keys = [&](float* to, const T* from, std::int64_t j) {
    const T* at = from + j * step;
    const int n = static_cast<int>(min(end - j, std::int64_t{kKeys}));
    if (sizeof(T) == 4 && p.vector && n == kKeys && p.D == kD) {
      stage_whole<kD>(to, at, step);
    } else {
      stage<kD>(to, kKeys, n, p.D, p.vector, from, [&](int r) { return at + r * step; });
    }
    commit_copies();
  };

  const int warp = threadIdx.x / kWarp, g = threadIdx.x % kWarp / 4;
  const int warp_row = warp * 16;
  const bool idle = warp_row >= rows;
  Span own[2];  // the nodes of the thread's rows
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int r = warp_row + h * 8 + g;
    own[h] = r < rows ? spans[item.node + (first_row + r) / p.group] : Span{0, 0};
  }
  __syncthreads();  // the shared memory of the piece before has been used
  stage<kD>(q, kRows, rows, p.D, p.vector, p.q,
            [&](int r) { return p.q + p.query(item, kv, first_row + r) * p.D; });
  stage_keys(k, keys, begin);
  stage_keys(v, values, begin);
  ChunkRows<kD, T> state;
  for (std::int64_t j = begin; j < end; j += kKeys) {
    wait_copies<1>();
    __syncthreads();  // the keys are there
    if (!idle) state.scores(q + warp_row * kStride, k, kStride, p.D);
    __syncthreads();  // and have been used
    if (j + kKeys < end) {
      stage_keys(k, keys, j + kKeys);
    } else {
      commit_copies();
    }
    const bool masked = j + kKeys > item.prefix;
    if (!idle && !masked) {
      state.weights(p.scale, false, [](int, int) { return true; });
    } else if (!idle) {
      state.weights(p.scale, true, [&](int h, int column) {
        const std::int64_t key = j + column;
        if (key < item.prefix) return true;
        return key < end && spans[item.node + key - item.prefix].holds(own[h]);
      });
    }
    wait_copies<1>();
    if (masked && threadIdx.x == 0) not_finite = 0;
    __syncthreads();  // the values are there
    if (masked) {
      // Values of a node that a row does not see may be NaN, which a weight of 0 would not stop.
      for (int i = threadIdx.x; i < kKeys * kD; i += kThreads) {
        float& x = v[i / kD * kStride + i % kD];
        if (isfinite(x)) continue;
        x = 0;
        atomicOr(&not_finite, 1u << (i / kD));
      }
      __syncthreads();
      if (not_finite != 0) state.poison(not_finite);
    }
    if (!idle) state.add_values(v);
    __syncthreads();  // and have been used
    if (j + kKeys < end) {
      stage_keys(v, values, j + kKeys);
    } else {
      commit_copies();
    }
  }
  wait_copies<0>();
  if (idle) return;

  const int t = threadIdx.x % 4;
  state.finish([&](int r, float max, float sum, const auto& out, int i) {
    if (warp_row + r >= rows) return;
    const std::int32_t row = first_row + warp_row + r;
    if (item.chunks > 1) {
      const std::int64_t at = p.partial_row(item, kv, chunk, row);
#pragma unroll
      for (int n = 0; n < kD / 8; ++n)
        put_pair(p.partial + at * p.D, n * 8 + 2 * t, p.D, p.vector, out[n][i], out[n][i + 1]);
      if (t == 0) p.partial_stats[at] = make_float2(max, sum);
      return;
    }
    const std::int64_t at = p.query(item, kv, row);
    const float inverse = 1.0f / sum;
#pragma unroll
    for (int n = 0; n < kD / 8; ++n) {
      put_pair(p.o + at * p.D, n * 8 + 2 * t, p.D, p.vector, out[n][i] * inverse,
               out[n][i + 1] * inverse);
    }
    if (t == 0 && p.lse != nullptr) p.lse[at] = (max + log2f(sum)) * kLn2;
  });
}

constexpr std::int32_t kMostChunks = 15;  // a lane of the merging warp each

// A warp merges the chunks of a query head of a node.
template <class T>
__device__ void merge(const Attention<T>& p, const Item& item, std::int64_t query) {
  if (item.chunks == 1) return;
  const int lane = threadIdx.x % kWarp;
  const auto head = static_cast<std::int32_t>(query % p.Hq);
  const auto row = static_cast<std::int32_t>((query / p.Hq - item.node) * p.group + head % p.group);
  const std::int64_t first = p.partial_row(item, head / p.group, 0, row);
  float2 stats = make_float2(-INFINITY, 0);
  if (lane < item.chunks) stats = p.partial_stats[first + std::int64_t{lane} * item.rows];
  float max = stats.x;
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    max = fmaxf(max, __shfl_xor_sync(kAll, max, offset));
  const float base = max == -INFINITY ? 0.0f : max;
  const float weight = exp2_fast(stats.x - base);
  float sum = weight * stats.y;
  for (int offset = kWarp / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
  const float share = weight / sum;
  const float* partial = p.partial + first * p.D;
  for (int d = lane; d - lane < p.D; d += kWarp) {
    float x = 0;
    for (int c = 0; c < item.chunks; ++c) {
      const float w = __shfl_sync(kAll, share, c);
      if (d < p.D) x += w * partial[std::int64_t{c} * item.rows * p.D + d];
    }
    if (d < p.D) put(p.o + query * p.D + d, x);
  }
  if (lane == 0 && p.lse != nullptr) p.lse[query] = (base + log2f(sum)) * kLn2;
}

template <int kD, class T>
__global__ void __launch_bounds__(kThreads)
    tree_attention(const __grid_constant__ Table table, const __grid_constant__ Attention<T> p) {
  extern __shared__ __align__(16) float memory[];
  const auto* items = table.at<Item>(p.items);
  const auto* spans = table.at<Span>(p.spans);
  for (std::int64_t at = blockIdx.x; at < p.work; at += gridDim.x) {
    const Item& item = find_item(items, p.B, at, [](const Item& i) { return i.work; });
    attend_chunk<kD>(p, item, spans, at - item.work, memory);
  }
  if (!p.split) return;
  cooperative_groups::this_grid().sync();
  const std::int64_t warps = std::int64_t{gridDim.x} * kWarps;
  for (std::int64_t query = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
       query < p.nodes * p.Hq; query += warps) {
    const Item& item = find_item(items, p.B, query / p.Hq, [](const Item& i) { return i.node; });
    merge(p, item, query);
  }
}

// --- attention: the host ---

// Cuts the items into pieces of work; returns how many.
struct Cut {
  std::int64_t work = 0, partial_rows = 0, longest = 0;  // longest piece, in tiles of keys
};
Cut cut(std::vector<Item>& items, std::int64_t Hkv, int tile_rows, std::int64_t keys_per_chunk) {
  Cut all;
  for (Item& item : items) {
    item.keys_per_chunk = keys_per_chunk;
    item.chunks = static_cast<std::int32_t>(
        std::max<std::int64_t>(1, (item.keys + keys_per_chunk - 1) / keys_per_chunk));
    item.tiles = (item.rows + tile_rows - 1) / tile_rows;
    item.work = all.work;
    item.partial = all.partial_rows;
    all.work += Hkv * item.tiles * item.chunks;
    if (item.chunks > 1) all.partial_rows += Hkv * item.rows * item.chunks;
    if (item.rows > 0)
      all.longest =
          std::max(all.longest, (std::min(item.keys, keys_per_chunk) + kKeys - 1) / kKeys);
  }
  return all;
}

// Chunks that take least: what memory takes and what the busiest multiprocessor takes. A tile of 32
// keys is 3 * 4 * rows * 32 * D flops of tf32; an SM of an H200 does 1,892 a clock.
Cut plan_chunks(std::vector<Item>& items, std::int64_t Hkv, std::int64_t D, int tile_rows) {
  std::int64_t most_keys = 1, tiles = 0, rows = 1;
  for (const Item& item : items) {
    if (item.rows == 0) continue;
    most_keys = std::max(most_keys, item.keys);
    const std::int64_t row_tiles = (item.rows + tile_rows - 1) / tile_rows;
    tiles += Hkv * row_tiles * ((item.keys + kKeys - 1) / kKeys);
    rows = std::max<std::int64_t>(rows, std::min(item.rows, tile_rows));
  }
  const double tile_clocks = 12.0 * static_cast<double>((rows + 15) / 16 * 16 * kKeys * D) / 1892;
  const double bytes_a_clock = 4.8e12 / 1.98e9, count = multiprocessors();
  double best = INFINITY;
  std::int64_t best_length = most_keys;
  for (std::int64_t chunks = 1; chunks <= kMostChunks; ++chunks) {
    const std::int64_t length = ((most_keys + chunks - 1) / chunks + kKeys - 1) / kKeys * kKeys;
    const Cut c = cut(items, Hkv, tile_rows, length);
    const double bytes = static_cast<double>(tiles) * kKeys * static_cast<double>(D) * 8 +
                         static_cast<double>(c.partial_rows * (D + 2)) * 8;
    const double busiest =
        std::max(static_cast<double>(c.longest), static_cast<double>(tiles) / count);
    const double clocks = bytes / bytes_a_clock + busiest * tile_clocks;
    if (clocks < best) {
      best = clocks;
      best_length = length;
    }
  }
  return cut(items, Hkv, tile_rows, best_length);
}

struct AttentionCall {
  assay_ctx* ctx;
  const fa_params* p;
  const std::int64_t *P, *cu;
  const std::int32_t* parent;
  const void *q, *const *kc, *const *vc;
  void* o;
  float* lse;
};

bool aligned(const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; }

template <int kD, class T>
int attend(const AttentionCall& call) {
  const fa_params& f = *call.p;
  const auto B = static_cast<std::int32_t>(f.B);
  Attention<T> p{};
  p.B = B;
  p.Hq = static_cast<std::int32_t>(f.Hq);
  p.Hkv = static_cast<std::int32_t>(f.Hkv);
  p.group = p.Hq / p.Hkv;
  p.D = static_cast<std::int32_t>(f.D);
  p.scale = f.scale * kLog2E;
  p.vector = f.D % 8 == 0 && aligned(call.q) && aligned(call.o);
  p.nodes = call.cu[B];
  p.q = static_cast<const T*>(call.q);
  p.o = static_cast<T*>(call.o);
  p.lse = call.lse;
  std::vector<Item> items;
  std::vector<Span> spans;
  for (std::int32_t b = 0; b < B; ++b) {
    const std::int64_t n = call.cu[b + 1] - call.cu[b];
    if (n == 0) continue;
    Item item{};
    item.k = call.kc[b];
    item.v = call.vc[b];
    item.prefix = call.P[b];
    item.keys = call.P[b] + n;
    item.node = call.cu[b];
    item.rows = static_cast<std::int32_t>(n) * p.group;
    p.vector = p.vector && aligned(item.k) && aligned(item.v);
    items.push_back(item);
    add_spans(n, call.parent + call.cu[b], spans);
  }
  p.B = static_cast<std::int32_t>(items.size());
  const Cut pieces = plan_chunks(items, p.Hkv, p.D, Tiling<kD>::kRows);
  p.work = pieces.work;
  p.split = pieces.partial_rows > 0;
  TableBuilder builder;
  p.items = builder.add(items);
  p.spans = builder.add(spans);
  const Scratch table(call.ctx, builder.scratch_bytes());
  const auto rows = static_cast<std::size_t>((pieces.partial_rows + 1) / 2 * 2);  // 16 bytes
  const Scratch partial(call.ctx, rows * (static_cast<std::size_t>(p.D) + 2) * sizeof(float));
  if (table.failed() || partial.failed()) return ASSAY_ENOMEM;
  // The pairs come first: D may be odd.
  p.partial_stats = partial.as<float2>();
  p.partial = p.split ? reinterpret_cast<float*>(p.partial_stats + rows) : nullptr;
  p.vector = p.vector && aligned(p.partial);

  const auto kernel = tree_attention<kD, T>;
  constexpr int kBytes = Tiling<kD>::kBytes;
  int resident = 0;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes) !=
          cudaSuccess ||
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kThreads, kBytes) !=
          cudaSuccess ||
      resident < 1) {
    return ASSAY_EINTERNAL;
  }
  Table uploaded = builder.upload(call.ctx, table);
  const auto blocks = static_cast<unsigned>(
      std::min<std::int64_t>(p.work, std::int64_t{resident} * multiprocessors()));
  void* arguments[] = {&uploaded, &p};
  cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), dim3(blocks), dim3(kThreads),
                              arguments, kBytes, stream_of(call.ctx));
  return launch_status();
}

template <class T>
int attend(const AttentionCall& call) {
  if (call.p->D <= 32) return attend<32, T>(call);
  if (call.p->D <= 64) return attend<64, T>(call);
  if (call.p->D <= 128) return attend<128, T>(call);
  return attend<256, T>(call);
}

// --- acceptance ---

// A block walks down the tree of an item and reads a row of logits when it gets there: of 64 nodes
// some 5 rows. Everything that decides is computed by the block as a whole, so all of its threads
// take the same way.
struct Accept {
  std::int32_t B, V, mode;
  float temperature;
  std::int64_t u_item, u_step;
  bool vector;                      // rows of logits are 16-byte aligned
  std::uint32_t cu, parent, token;  // in the table
  std::uint32_t eos, budget;        // in the table, with what stands for NULL
  const float *root_logits, *node_logits, *uniform, *root_q, *node_q;
  double* work;                              // [blocks, 2, V]: p and q of modes B and C
  std::int32_t *count, *bonus, *nan, *path;  // results
};

// A float and its index as one integer that orders by value, then by the lower index.
__device__ std::uint64_t ranked(float value, std::int32_t index) {
  std::uint32_t bits = __float_as_uint(value + 0.0f);  // -0 becomes 0
  bits = (bits & 0x80000000) != 0 ? ~bits : bits | 0x80000000;
  return std::uint64_t{bits} << 32 | static_cast<std::uint32_t>(INT_MAX - index);
}

// The lowest index of the largest logit, or -1 if there is a NaN.
__device__ std::int32_t argmax(const float* x, std::int32_t V, bool vector) {
  float best = -INFINITY;
  std::int32_t at = INT_MAX;
  bool nan = false;
  const auto consider = [&](float value, std::int32_t v) {
    nan = nan || isnan(value);
    if (value > best || at == INT_MAX) {
      best = value;
      at = v;
    }
  };
  const auto first = static_cast<std::int32_t>(threadIdx.x);
  const auto step = static_cast<std::int32_t>(blockDim.x);
  if (vector) {
    for (std::int32_t i = first; i < V / 4; i += step) {
      const float4 four = reinterpret_cast<const float4*>(x)[i];
      consider(four.x, 4 * i);
      consider(four.y, 4 * i + 1);
      consider(four.z, 4 * i + 2);
      consider(four.w, 4 * i + 3);
    }
  } else {
    for (std::int32_t v = first; v < V; v += step) consider(x[v], v);
  }
  const std::uint64_t mine = nan ? ~std::uint64_t{0} : at == INT_MAX ? 0 : ranked(best, at);
  const std::uint64_t all =
      block_reduce(mine, [](std::uint64_t a, std::uint64_t b) { return a > b ? a : b; });
  if (all == ~std::uint64_t{0}) return -1;
  return INT_MAX - static_cast<std::int32_t>(static_cast<std::uint32_t>(all));
}

struct Tree {
  std::int32_t n;
  const std::int32_t *parent, *token;

  // The lowest child of `node` above `after` that holds `wanted`, any token if that is -1; n if
  // there is none.
  __device__ std::int32_t child(std::int32_t node, std::int32_t after, std::int32_t wanted) const {
    std::int32_t found = n;
    for (std::int32_t i = after + 1 + static_cast<std::int32_t>(threadIdx.x); i < n;
         i += static_cast<std::int32_t>(blockDim.x)) {
      if (parent[i] != node || (wanted >= 0 && token[i] != wanted)) continue;
      found = i;
      break;
    }
    return block_reduce(found, [](std::int32_t a, std::int32_t b) { return min(a, b); });
  }
};

// The lowest index at which the running sum of weight(0), weight(1) ... exceeds u times its total.
// A warp has a segment of the indices, and the warp in whose segment it happens looks again.
template <class Weight>
__device__ std::int32_t draw(std::int32_t V, double u, const Weight& weight) {
  __shared__ double totals[kMostWarps];
  __shared__ std::int32_t drawn;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const auto warps = static_cast<std::int32_t>(blockDim.x / kWarp);
  const std::int32_t segment = (V + warps * kWarp - 1) / (warps * kWarp) * kWarp;
  const std::int32_t begin = min(V, warp * segment), end = min(V, begin + segment);
  double mine = 0;
  for (std::int32_t v = begin + lane; v < end; v += kWarp) mine += weight(v);
  for (int offset = kWarp / 2; offset > 0; offset /= 2) mine += __shfl_xor_sync(kAll, mine, offset);
  __syncthreads();  // the draw before has been read
  if (lane == 0) totals[warp] = mine;
  __syncthreads();
  double total = 0, before = 0, sum = 0;
  for (std::int32_t w = 0; w < warps; ++w) total += totals[w];
  std::int32_t chosen = 0;  // without any that exceeds: the last one with weight
  bool found = false;
  for (std::int32_t w = 0; w < warps; ++w) {
    if (!found && totals[w] > 0) {
      chosen = w;
      before = sum;
    }
    sum += totals[w];
    found = found || sum > u * total;
  }
  if (warp == chosen) {
    std::int32_t last = begin, at = -1;
    for (std::int32_t base = begin; base < end && at < 0; base += kWarp) {
      const double w = base + lane < end ? weight(base + lane) : 0;
      double running = w;
      for (int offset = 1; offset < kWarp; offset *= 2) {
        const double other = __shfl_up_sync(kAll, running, offset);
        if (lane >= offset) running += other;
      }
      const unsigned positive = __ballot_sync(kAll, w > 0);
      const unsigned beyond = __ballot_sync(kAll, w > 0 && before + running > u * total);
      if (positive != 0) last = base + kWarp - 1 - __clz(static_cast<int>(positive));
      if (beyond != 0) at = base + __ffs(static_cast<int>(beyond)) - 1;
      before += __shfl_sync(kAll, running, kWarp - 1);
    }
    if (lane == 0) drawn = at >= 0 ? at : last;
  }
  __syncthreads();
  return drawn;
}

struct Step {
  std::int32_t child, token;  // child n: the token is the bonus; token -1: there was a NaN
};

// max(0, w - minus), normalised; left alone if nothing remains. Threads have every blockDim-th.
__device__ void subtract(double* w, const double* minus, std::int32_t V) {
  double sum = 0;
  for (std::int32_t v = threadIdx.x; v < V; v += blockDim.x) sum += fmax(0.0, w[v] - minus[v]);
  sum = block_sum(sum);
  for (std::int32_t v = threadIdx.x; v < V && sum > 0; v += blockDim.x)
    w[v] = fmax(0.0, w[v] - minus[v]) / sum;
}

__device__ void remove_token(double* q, std::int32_t x, std::int32_t V) {
  double sum = 0;
  for (std::int32_t v = threadIdx.x; v < V; v += blockDim.x) {
    if (v == x) q[v] = 0;
    sum += q[v];
  }
  sum = block_sum(sum);
  for (std::int32_t v = threadIdx.x; v < V && sum > 0; v += blockDim.x) q[v] /= sum;
}

__device__ Step sample(const Accept& a, const Tree& tree, std::int32_t node, const float* logits,
                       const float* draft, const float* u) {
  const std::int32_t best = argmax(logits, a.V, a.vector);
  if (best < 0) return {tree.n, -1};
  const double max = logits[best], temperature = a.temperature;
  const auto weight = [&](std::int32_t v) { return exp((logits[v] - max) / temperature); };
  if (a.mode == DV_SAMPLE_TREE) {
    const std::int32_t x = draw(a.V, u[0], weight);
    return {tree.child(node, node, x), x};
  }
  double *p = a.work + std::int64_t{blockIdx.x} * 2 * a.V, *q = p + a.V;
  double sum = 0;
  for (std::int32_t v = threadIdx.x; v < a.V; v += blockDim.x) {
    sum += p[v] = weight(v);
    q[v] = draft[v];
  }
  sum = block_sum(sum);
  for (std::int32_t v = threadIdx.x; v < a.V; v += blockDim.x) p[v] /= sum;
  for (std::int32_t child = tree.child(node, node, -1); child < tree.n;
       child = tree.child(node, child, -1)) {
    const std::int32_t x = tree.token[child];
    __syncthreads();  // p and q are complete
    if (static_cast<double>(*u++) * q[x] < p[x]) return {child, x};
    __syncthreads();  // and have been read
    subtract(p, q, a.V);
    if (a.mode == DV_SAMPLE_NO_REPL) remove_token(q, x, a.V);
  }
  __syncthreads();
  return {tree.n, draw(a.V, *u, [&](std::int32_t v) { return p[v]; })};
}

constexpr int kMostAcceptThreads = 1024;
__global__ void __launch_bounds__(kMostAcceptThreads)
    accept(const __grid_constant__ Table table, const __grid_constant__ Accept a) {
  const auto* cu = table.at<std::int64_t>(a.cu);
  for (std::int32_t b = blockIdx.x; b < a.B; b += static_cast<std::int32_t>(gridDim.x)) {
    const std::int64_t first = cu[b];
    const Tree tree{static_cast<std::int32_t>(cu[b + 1] - first),
                    table.at<std::int32_t>(a.parent) + first,
                    table.at<std::int32_t>(a.token) + first};
    const std::int32_t limit = table.at<std::int32_t>(a.budget)[b];
    const std::int32_t eos = table.at<std::int32_t>(a.eos)[b];
    std::int32_t node = -1, count = 0, bonus = -1;
    bool nan = false;
    while (count < limit) {
      // A node's logits verify its children.
      const std::int64_t row = (node < 0 ? b : first + node) * std::int64_t{a.V};
      const float* logits = (node < 0 ? a.root_logits : a.node_logits) + row;
      Step step{tree.n, -1};
      if (a.mode == DV_GREEDY) {
        step.token = argmax(logits, a.V, a.vector);
        if (step.token >= 0) step.child = tree.child(node, node, step.token);
      } else {
        const float* draft = node < 0 ? a.root_q : a.node_q;
        step = sample(a, tree, node, logits, draft + (draft != nullptr ? row : 0),
                      a.uniform + b * a.u_item + count * a.u_step);
      }
      nan = step.token < 0;
      if (nan) break;
      if (step.child == tree.n) {
        bonus = step.token;
        break;
      }
      if (threadIdx.x == 0) a.path[first + count] = step.child;
      ++count;
      node = step.child;
      if (eos >= 0 && step.token == eos) break;
    }
    for (std::int32_t i = count + static_cast<std::int32_t>(threadIdx.x); i < tree.n;
         i += static_cast<std::int32_t>(blockDim.x))
      a.path[first + i] = -1;
    if (threadIdx.x == 0) {
      a.count[b] = count;
      a.bonus[b] = bonus;
      a.nan[b] = nan ? 1 : 0;
    }
  }
}

bool good_sampling(const dv_sampling& s, std::int64_t nodes) {
  if (s.size != sizeof(dv_sampling) || !(s.temperature > 0) || s.uniform == nullptr) return false;
  if (s.mode < DV_SAMPLE_TREE || s.mode > DV_SAMPLE_NO_REPL) return false;
  return s.mode == DV_SAMPLE_TREE || (s.root_q != nullptr && (s.node_q != nullptr || nodes == 0));
}

// --- compaction ---

struct Moves {
  std::int32_t caches;
  std::int64_t row_words;
  std::uint32_t P, cu, path, count, kv;  // in the table
};

// A block for 128 words of the rows of a cache, or for several times 128 if rows are very wide. A thread
// has its words of each row to itself and moves them in ascending order: what it overwrites has been
// moved already or is not wanted.
template <class Word>
__global__ void compact(const __grid_constant__ Table table, Moves m) {
  const std::int64_t b = blockIdx.x / m.caches, step = std::int64_t{gridDim.y} * blockDim.x;
  const auto* path = table.at<std::int32_t>(m.path) + table.at<std::int64_t>(m.cu)[b];
  auto* rows = static_cast<Word*>(table.at<void*>(m.kv)[blockIdx.x]) +
               table.at<std::int64_t>(m.P)[b] * m.row_words;
  const std::int32_t count = table.at<std::int32_t>(m.count)[b];
  std::int64_t at = static_cast<std::int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
  for (; at < m.row_words; at += step) {
    for (std::int32_t j = 0; j < count; ++j) {
      if (path[j] != j) rows[j * m.row_words + at] = rows[path[j] * m.row_words + at];
    }
  }
}

// --- the loop ---

// The rows of a verify: the tokens that the cache lacks, a chain, and behind it the draft tree.
struct Forward {
  std::int64_t rows, words;
  std::vector<std::uint64_t> bits;
  std::vector<std::int64_t> pos;
};
Forward forward_pass(std::int64_t cached, std::int64_t fresh, std::int32_t n,
                     const std::int32_t* parent) {
  const std::int64_t rows = fresh + n, words = (rows + 63) / 64;
  Forward f{rows, words, std::vector<std::uint64_t>(static_cast<std::size_t>(rows * words)),
            std::vector<std::int64_t>(static_cast<std::size_t>(rows))};
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t up = r < fresh ? r - 1 : fresh + parent[r - fresh];
    std::uint64_t* row = f.bits.data() + r * words;
    if (up >= 0) std::copy_n(f.bits.data() + up * words, words, row);
    row[r / 64] |= std::uint64_t{1} << (r % 64);
    f.pos[static_cast<std::size_t>(r)] = up < 0 ? cached : f.pos[static_cast<std::size_t>(up)] + 1;
  }
  return f;
}

}  // namespace

extern "C" {

int dv_mask(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu, const int32_t* parent,
            int64_t ldm, uint64_t* bits, int32_t* depth, int64_t* pos) {
  if (!good_batch(B, cu, parent) || !good_prefixes(B, P)) return ASSAY_EINVAL;
  if (most_nodes(B, cu) > 64 * ldm) return ASSAY_EINVAL;
  if (B == 0 || cu[B] == 0) return ASSAY_OK;
  if (bits == nullptr || depth == nullptr || pos == nullptr) return ASSAY_EINVAL;
  TableBuilder builder;
  MaskShape shape{B, cu[B], ldm, 0, 0, 0};
  shape.P = builder.add(P, B);
  shape.cu = builder.add(cu, B + 1);
  shape.parent = builder.add(parent, cu[B]);
  const Scratch table(ctx, builder.scratch_bytes());
  if (table.failed()) return ASSAY_ENOMEM;
  ancestor_bits<<<static_cast<unsigned>((cu[B] + 127) / 128), 128, 0, stream_of(ctx)>>>(
      builder.upload(ctx, table), shape, bits, depth, pos);
  return launch_status();
}

int dv_full_mask(assay_ctx* ctx, int64_t P, int64_t n, const int32_t* parent, uint8_t* M) {
  if (P < 1 || n < 0 || !good_tree(n, parent) || M == nullptr) return ASSAY_EINVAL;
  std::vector<Span> spans;
  add_spans(n, parent, spans);
  TableBuilder builder;
  builder.add(spans);
  const Scratch table(ctx, builder.scratch_bytes());
  if (table.failed()) return ASSAY_ENOMEM;
  full_mask<<<static_cast<unsigned>(P + n), 128, 0, stream_of(ctx)>>>(builder.upload(ctx, table), P,
                                                                      n, M);
  return launch_status();
}

int dv_attention(assay_ctx* ctx, const fa_params* p, const int64_t* P, const int64_t* cu,
                 const int32_t* parent, const void* q, const void* const* kc, const void* const* vc,
                 void* o, float* lse) {
  if (p == nullptr || p->size != sizeof(fa_params) || p->B < 0 || p->B > INT_MAX)
    return ASSAY_EINVAL;
  if (p->Hkv < 1 || p->Hq < 0 || p->Hq % p->Hkv != 0 || p->D < 1) return ASSAY_EINVAL;
  const auto B = static_cast<std::int32_t>(p->B);
  if (!good_batch(B, cu, parent) || !good_prefixes(B, P)) return ASSAY_EINVAL;
  if (B == 0 || cu[B] == 0 || p->Hq == 0) return ASSAY_OK;
  if (q == nullptr || o == nullptr || kc == nullptr || vc == nullptr) return ASSAY_EINVAL;
  for (std::int32_t b = 0; b < B; ++b) {
    if (kc[b] == nullptr || vc[b] == nullptr) return ASSAY_EINVAL;
  }
  if (p->Dv != p->D || p->D > 256) return ASSAY_ENOTSUP;
  const AttentionCall call{ctx, p, P, cu, parent, q, kc, vc, o, lse};
  if (p->dtype == ASSAY_F32) return attend<float>(call);
  if (p->dtype == ASSAY_BF16) return attend<__nv_bfloat16>(call);
  return ASSAY_ENOTSUP;
}

int dv_accept(assay_ctx* ctx, int32_t B, int32_t V, const int64_t* cu, const int32_t* parent,
              const int32_t* token, const float* root_logits, const float* node_logits,
              const int32_t* eos, const int32_t* budget, const dv_sampling* sampling,
              int32_t* acc_node, int32_t* n_acc, int32_t* bonus) {
  if (!good_batch(B, cu, parent)) return ASSAY_EINVAL;
  if (B == 0) return ASSAY_OK;
  const std::int64_t nodes = cu[B];
  if (V < 1 || root_logits == nullptr || n_acc == nullptr || bonus == nullptr) return ASSAY_EINVAL;
  if (nodes > 0 && (token == nullptr || node_logits == nullptr || acc_node == nullptr))
    return ASSAY_EINVAL;
  for (std::int64_t i = 0; i < nodes; ++i) {
    if (token[i] < 0 || token[i] >= V) return ASSAY_EINVAL;
  }
  for (std::int32_t b = 0; budget != nullptr && b < B; ++b) {
    if (budget[b] < 0) return ASSAY_EINVAL;
  }
  const std::int32_t mode = sampling != nullptr ? sampling->mode : DV_GREEDY;
  if (mode != DV_GREEDY && !good_sampling(*sampling, nodes)) return ASSAY_EINVAL;

  Accept a{};
  a.B = B;
  a.V = V;
  a.mode = mode;
  a.vector = V % 4 == 0 && aligned(root_logits) && (nodes == 0 || aligned(node_logits));
  a.root_logits = root_logits;
  a.node_logits = node_logits;
  if (mode != DV_GREEDY) {
    a.temperature = sampling->temperature;
    a.u_item = sampling->u_item;
    a.u_step = sampling->u_step;
    a.uniform = sampling->uniform;
    a.root_q = mode != DV_SAMPLE_TREE ? sampling->root_q : nullptr;
    a.node_q = mode != DV_SAMPLE_TREE ? sampling->node_q : nullptr;
  }
  const auto items = static_cast<std::size_t>(B);
  TableBuilder builder;
  a.cu = builder.add(cu, B + 1);
  a.parent = builder.add(parent, nodes);
  a.token = builder.add(token, nodes);
  a.eos = eos != nullptr ? builder.add(eos, B) : builder.add(std::vector<std::int32_t>(items, -1));
  a.budget = budget != nullptr ? builder.add(budget, B)
                               : builder.add(std::vector<std::int32_t>(items, INT_MAX));

  // Threads for a quarter of a row each, or of the nodes. Of modes B and C a block has room for its
  // distributions, so there are no more blocks than the GPU may run at a time.
  const std::int64_t wanted = std::max<std::int64_t>(V, most_nodes(B, cu)) / 4;
  const auto threads = static_cast<unsigned>(
      std::clamp<std::int64_t>((wanted + 31) / 32 * 32, 32, kMostAcceptThreads));
  const std::int64_t blocks = std::min<std::int64_t>(B, std::int64_t{multiprocessors()} * 16);
  const bool distributions = mode == DV_SAMPLE_IID || mode == DV_SAMPLE_NO_REPL;
  const auto work_bytes =
      distributions ? static_cast<std::size_t>(blocks) * 2 * static_cast<std::size_t>(V) * 8 : 0;
  const std::size_t numbers = 3 * items + static_cast<std::size_t>(nodes);
  const Scratch table(ctx, builder.scratch_bytes()), work(ctx, work_bytes),
      results(ctx, numbers * sizeof(std::int32_t));
  if (table.failed() || work.failed() || results.failed()) return ASSAY_ENOMEM;
  a.work = work.as<double>();
  a.count = results.as<std::int32_t>();
  a.bonus = a.count + B;
  a.nan = a.bonus + B;
  a.path = a.nan + B;
  accept<<<static_cast<unsigned>(blocks), threads, 0, stream_of(ctx)>>>(builder.upload(ctx, table),
                                                                        a);
  if (const int status = launch_status(); status != ASSAY_OK) return status;
  std::vector<std::int32_t> found(numbers);
  cudaMemcpyAsync(found.data(), a.count, numbers * sizeof(std::int32_t), cudaMemcpyDeviceToHost,
                  stream_of(ctx));
  if (cudaStreamSynchronize(stream_of(ctx)) != cudaSuccess) return ASSAY_EINTERNAL;
  const auto nan = found.begin() + 2 * std::int64_t{B}, path = nan + B;
  if (std::any_of(nan, path, [](std::int32_t x) { return x != 0; })) return ASSAY_EINVAL;
  std::copy(found.begin(), found.begin() + B, n_acc);
  std::copy(found.begin() + B, nan, bonus);
  std::copy(path, found.end(), acc_node);
  return ASSAY_OK;
}

int dv_compact(assay_ctx* ctx, int32_t B, const int64_t* P, const int64_t* cu,
               const int32_t* acc_node, const int32_t* n_acc, int64_t row_bytes, int32_t caches,
               void* const* kv) {
  if (!good_offsets(B, cu) || !good_prefixes(B, P) || row_bytes < 0 || caches < 0)
    return ASSAY_EINVAL;
  if (B > 0 && (n_acc == nullptr || (cu[B] > 0 && acc_node == nullptr))) return ASSAY_EINVAL;
  bool moves = false;
  for (std::int32_t b = 0; b < B; ++b) {
    const std::int64_t n = cu[b + 1] - cu[b];
    if (n_acc[b] < 0 || n_acc[b] > n) return ASSAY_EINVAL;
    std::int32_t before = -1;
    for (std::int32_t j = 0; j < n_acc[b]; ++j) {
      const std::int32_t node = acc_node[cu[b] + j];
      if (node <= before || node >= n) return ASSAY_EINVAL;
      moves = moves || node != j;
      before = node;
    }
  }
  const std::int64_t all = row_bytes > 0 ? std::int64_t{B} * caches : 0;
  std::uintptr_t misaligned = static_cast<std::uintptr_t>(row_bytes);
  for (std::int64_t c = 0; c < all; ++c) {
    if (kv == nullptr || kv[c] == nullptr) return ASSAY_EINVAL;
    misaligned |= reinterpret_cast<std::uintptr_t>(kv[c]);
  }
  if (all == 0 || !moves) return ASSAY_OK;
  TableBuilder builder;
  Moves m{};
  m.caches = caches;
  m.P = builder.add(P, B);
  m.cu = builder.add(cu, B + 1);
  m.path = builder.add(acc_node, cu[B]);
  m.count = builder.add(n_acc, B);
  m.kv = builder.add(kv, all);
  const Scratch table(ctx, builder.scratch_bytes());
  if (table.failed()) return ASSAY_ENOMEM;
  const auto kernel = misaligned % 16 == 0  ? compact<uint4>
                      : misaligned % 4 == 0 ? compact<std::uint32_t>
                                            : compact<unsigned char>;
  m.row_words = row_bytes / (misaligned % 16 == 0 ? 16 : misaligned % 4 == 0 ? 4 : 1);
  constexpr std::int64_t kMostBlocks = 65535;  // in y
  const std::int64_t across = std::min<std::int64_t>((m.row_words + 127) / 128, kMostBlocks);
  const dim3 grid(static_cast<unsigned>(all), static_cast<unsigned>(across));
  kernel<<<grid, 128, 0, stream_of(ctx)>>>(builder.upload(ctx, table), m);
  return launch_status();
}

int dv_generate(assay_ctx* ctx, const dv_loop* loop, const dv_model* m, int32_t* out,
                int64_t* n_out) {
  if (loop == nullptr || m == nullptr || n_out == nullptr || loop->size != sizeof(dv_loop))
    return ASSAY_EINVAL;
  if (m->size != sizeof(dv_model) || m->V < 1 || m->max_nodes < 0 || loop->n_prompt < 1)
    return ASSAY_EINVAL;
  if (loop->prompt == nullptr || loop->max_new < 0 || (loop->max_new > 0 && out == nullptr))
    return ASSAY_EINVAL;
  const std::int64_t V = m->V, most = loop->n_prompt + 1 + m->max_nodes;
  const Scratch logits(ctx, loop->max_new > 0 ? static_cast<std::size_t>(most * V) * 4 : 0);
  if (logits.failed()) return ASSAY_ENOMEM;
  std::vector<std::int32_t> text(loop->prompt, loop->prompt + loop->n_prompt);
  std::vector<std::int32_t> parent(static_cast<std::size_t>(m->max_nodes) + 1), path(parent.size()),
      token(static_cast<std::size_t>(most));
  const std::int64_t limit = loop->n_prompt + loop->max_new;
  std::int64_t cached = 0;
  for (bool more = loop->max_new > 0; more;) {
    const auto length = static_cast<std::int64_t>(text.size()), fresh = length - cached;
    std::copy(text.begin() + cached, text.end(), token.begin());
    std::int32_t n = 0;
    int status = m->draft(m->user, length, text.data(), &n, parent.data(), token.data() + fresh);
    if (status != ASSAY_OK) return status;
    if (n < 0 || n > m->max_nodes || !good_tree(n, parent.data())) return ASSAY_EINVAL;
    const Forward f = forward_pass(cached, fresh, n, parent.data());
    status = m->verify(m->user, f.rows, token.data(), f.pos.data(), f.words, f.bits.data(),
                       logits.as<float>());
    if (status != ASSAY_OK) return status;
    const std::int64_t cu[2] = {0, n};
    const auto budget =
        static_cast<std::int32_t>(std::min<std::int64_t>(limit - length, INT32_MAX));
    std::int32_t accepted = 0, bonus = -1;
    status = dv_accept(ctx, 1, m->V, cu, parent.data(), token.data() + fresh,
                       logits.as<float>() + (fresh - 1) * V, logits.as<float>() + fresh * V,
                       &loop->eos, &budget, nullptr, path.data(), &accepted, &bonus);
    if (status != ASSAY_OK) return status;
    std::vector<std::int64_t> keep;
    for (std::int64_t r = 0; r < fresh; ++r) keep.push_back(r);
    for (std::int32_t j = 0; j < accepted; ++j) {
      keep.push_back(fresh + path[static_cast<std::size_t>(j)]);
      text.push_back(token[static_cast<std::size_t>(keep.back())]);
    }
    cached = static_cast<std::int64_t>(text.size());
    if (bonus >= 0) text.push_back(bonus);
    more = bonus >= 0 && bonus != loop->eos && static_cast<std::int64_t>(text.size()) < limit;
    if (!more) break;
    status = m->commit(m->user, static_cast<std::int64_t>(keep.size()), keep.data());
    if (status != ASSAY_OK) return status;
  }
  const auto emitted = static_cast<std::int64_t>(text.size()) - loop->n_prompt;
  std::copy(text.begin() + loop->n_prompt, text.end(), out);
  std::fill(out + emitted, out + loop->max_new, -1);
  *n_out = emitted;
  return ASSAY_OK;
}

}  // extern "C"
