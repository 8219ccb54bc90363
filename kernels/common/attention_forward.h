// Softmax attention, forward: the kernel, its launch and the checks of what a call was given.
// flash_attention_fwd.cu says why it is as it is.
#pragma once

#include <cooperative_groups.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "abi.h"
#include "common/attention_call.h"
#include "common/attention_tiles.h"
#include "common/device.h"
#include "common/warp_attention.h"

namespace {

constexpr int kKeys = 64;        // of a tile
constexpr int kMostChunks = 32;  // of the keys of a tile of rows

// --- what the host knows ---

struct Attention {
  const void *q, *k, *v;
  void* o;
  float* lse;  // or null
  assay_stride sq, sk, sv, so;
  std::int32_t window;  // 0: none
  std::int32_t items, Hq, Hkv, group, Nq, Nk, D, Dv;
  float scale;
  bool causal, vector_q, vector_k, vector_v, vector_o;  // aligned to 16 bytes; o: to 4 elements
  bool bf16_output;                                     // of fp8
  // Extras, null or 0 where there are none.
  float softcap;
  const float *alibi, *sink, *bias, *scales;
  std::int64_t bias_b, bias_h, bias_i, bias_j;  // strides, 0 where one value serves all
  const std::int64_t *kv_len, *cu_q, *cu_k;
  // The cut of the work.
  std::int32_t row_tiles, slices, chunks, tiles_per_chunk;
  std::int32_t score_steps;         // of 64 bytes of a row of q and k
  std::int32_t keys_at, values_at;  // bytes of shared memory before the tiles
  float* partial;                   // [heads, row tile, chunk, kRows, partial_width]
  float* partial_lse;               // [heads, row tile, chunk, kRows], of base 2
  std::int32_t partial_width;

  __host__ __device__ std::int32_t stride_bytes() const { return score_steps * 64 + 16; }
  __host__ __device__ bool adjusts_scores() const {
    return softcap > 0 || alibi != nullptr || bias != nullptr;
  }
};

// Tiles of keys that rows `first` to `last` see, from `begin` on.
struct KeyTiles {
  std::int32_t begin, end, count;
};

__host__ __device__ KeyTiles visible_tiles(std::int32_t first, std::int32_t last,
                                           std::int32_t group, std::int32_t Nq, std::int32_t Nk,
                                           bool causal, std::int32_t window) {
  const std::int32_t begin = visible_keys(first / group, Nq, Nk, causal, window).begin;
  const std::int32_t end = visible_keys(last / group, Nq, Nk, causal, window).end;
  const std::int32_t start = begin / kKeys * kKeys;
  return {start, end, end > begin ? (end - start + kKeys - 1) / kKeys : 0};
}

// kRows rows of a key head. Row r is query r / group of the head's query head r % group, so that
// grouped heads share what is read of their keys.
struct RowTile {
  std::int32_t b, kv, first, rows;  // rows: that exist
  std::int32_t Nq, Nk;              // of the item
  std::int64_t q_first, k_first;    // positions before it
  KeyTiles keys;
  std::int32_t chunks;

  __device__ RowTile(const Attention& a, std::int64_t at) {
    // Where queries see different numbers of keys, the longest come first.
    const auto tile = a.row_tiles - 1 - static_cast<std::int32_t>(at % a.row_tiles);
    const auto head = static_cast<std::int32_t>(at / a.row_tiles);
    kv = head % a.Hkv;
    b = head / a.Hkv;
    Nq = a.Nq;
    Nk = a.Nk;
    q_first = k_first = 0;
    if (a.cu_q != nullptr) {
      q_first = a.cu_q[b];
      k_first = a.cu_k[b];
      Nq = static_cast<std::int32_t>(a.cu_q[b + 1] - q_first);
      Nk = static_cast<std::int32_t>(a.cu_k[b + 1] - k_first);
    }
    if (a.kv_len != nullptr) Nk = static_cast<std::int32_t>(a.kv_len[b]);
    first = tile * kRows;
    rows = max(0, min(Nq * a.group - first, kRows));
    keys = {0, 0, 0};
    if (rows > 0)
      keys = visible_tiles(first, first + rows - 1, a.group, Nq, Nk, a.causal, a.window);
    chunks = max(1, (keys.count + a.tiles_per_chunk - 1) / a.tiles_per_chunk);
  }

  __device__ std::int32_t query(const Attention& a, std::int32_t r) const {
    return (first + r) / a.group;
  }
  __device__ std::int32_t head(const Attention& a, std::int32_t r) const {
    return kv * a.group + (first + r) % a.group;
  }
  __device__ std::int64_t offset(const Attention& a, const assay_stride& s, std::int32_t r) const {
    return b * s.b + head(a, r) * s.h + (q_first + query(a, r)) * s.n;
  }
  __device__ std::int64_t lse_at(const Attention& a, std::int32_t r) const {
    if (a.cu_q != nullptr) return head(a, r) * a.cu_q[a.items] + q_first + query(a, r);
    return (std::int64_t{b} * a.Hq + head(a, r)) * a.Nq + query(a, r);
  }
};

// --- a warp's rows ---

template <class S, int kOut>
struct WarpTile : OnlineSoftmax<kOut, kKeys> {
  using Softmax = OnlineSoftmax<kOut, kKeys>;
  using Softmax::kKeyTiles, Softmax::kOutTiles, Softmax::p, Softmax::out;
  static constexpr int kStride = kOut + 16 / sizeof(S);  // of staged values

  // Where the tile is masked a row sees the columns from `from` up to `to`.
  template <bool kMasked>
  __device__ void weights(float scale, const int (&from)[2], const int (&to)[2]) {
    this->template weigh<true>(scale, [&](int h, int column) {
      return !kMasked || (column >= from[h] && column < to[h]);
    });
  }

  // Values that are not finite are left out of a masked tile, and spoil() puts them into the rows
  // that see them: 0 times NaN would be NaN in the others too.
  __device__ void add_values(const S* v, bool masked) {
    constexpr int kPieces = kOut * static_cast<int>(sizeof(S)) / 16;
    if (masked && any_not_finite(v, kStride, kKeys, kPieces)) {
      add_products<true>(out, p, v, kStride);
      spoil(out, p, v, kStride, kOut);
    } else {
      add_products<false>(out, p, v, kStride);
    }
  }
};

// --- scores that are more than products ---

// A thread's view of one of its rows.
struct RowView {
  std::int32_t query, last;  // last: the key of its own position, to which causality is aligned
  Span keys;                 // none where there is no row
  float slope;               // of its head
  const float* bias;
};

__device__ RowView row_view(const Attention& a, const RowTile& tile, std::int32_t r) {
  RowView view{0, 0, {0, 0}, 0, nullptr};
  if (r >= tile.rows) return view;
  const std::int32_t head = tile.head(a, r);
  view.query = tile.query(a, r);
  view.last = view.query + tile.Nk - tile.Nq;
  view.keys = visible_keys(view.query, tile.Nq, tile.Nk, a.causal, a.window);
  if (a.alibi != nullptr) view.slope = a.alibi[head];
  if (a.bias != nullptr)
    view.bias = a.bias + tile.b * a.bias_b + head * a.bias_h + view.query * a.bias_i;
  return view;
}

// Products of the keys from j on become scores in units of log 2.
template <int kKeyTiles>
__device__ void adjust(float (&p)[kKeyTiles][4], const Attention& a, float scale,
                       const RowView (&view)[2], std::int32_t j) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n) {
      const std::int32_t key = j + n * 8 + 2 * t;
      float bias[2] = {0, 0};
      if (a.bias != nullptr) {
        const float* at = view[h].bias + key * a.bias_j;
        const bool sees[2] = {key >= view[h].keys.begin && key < view[h].keys.end,
                              key + 1 >= view[h].keys.begin && key + 1 < view[h].keys.end};
        if (sees[0] && sees[1] && a.bias_j == 1 && reinterpret_cast<std::uintptr_t>(at) % 8 == 0) {
          const float2 both = *reinterpret_cast<const float2*>(at);
          bias[0] = both.x;
          bias[1] = both.y;
        } else {
          if (sees[0]) bias[0] = at[0];
          if (sees[1]) bias[1] = at[a.bias_j];
        }
      }
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float s = p[n][2 * h + e] * scale;
        if (a.softcap > 0) s = a.softcap * tanhf(s / a.softcap);
        if (a.alibi != nullptr)
          s -= view[h].slope * static_cast<float>(abs(view[h].last - key - e));
        p[n][2 * h + e] = (s + bias[e]) * kLog2E;
      }
    }
  }
}

// --- attention ---

template <int kOut>
constexpr int kResultStride = kOut + 8;  // floats

// What a row's sums are multiplied with, and the logarithm of its weights.
struct Finish {
  float factor, lse;
};

__device__ Finish finish(const Attention& a, std::int32_t head, float max, float sum) {
  if (a.sink != nullptr) {
    const float sink = a.sink[head] * kLog2E, largest = fmaxf(max, sink);
    const float keep = exp2f(max - largest);  // even where it is subnormal: values may be large
    sum = sum * keep + exp2_fast(sink - largest);
    const float output = a.scales != nullptr ? a.scales[2] : 1.0f;
    return {output * keep / sum, (largest + log2f(sum)) * kLn2};
  }
  if (sum == 0) return {0, -INFINITY};  // it sees no key
  const float output = a.scales != nullptr ? a.scales[2] : 1.0f;
  return {output / sum, (max + log2f(sum)) * kLn2};
}

template <class T>
__device__ void put_result(const Attention& a, std::int64_t at, float x) {
  if constexpr (!std::is_same_v<T, __nv_fp8_e4m3>) {
    put(static_cast<T*>(a.o) + at, x);
  } else if (a.bf16_output) {
    put(static_cast<__nv_bfloat16*>(a.o) + at, x);
  } else {
    put(static_cast<float*>(a.o) + at, x);
  }
}
template <class T>
__device__ void store_results(const Attention& a, std::int64_t at, float4 x) {
  if constexpr (!std::is_same_v<T, __nv_fp8_e4m3>) {
    store4(static_cast<T*>(a.o) + at, x);
  } else if (a.bf16_output) {
    store4(static_cast<__nv_bfloat16*>(a.o) + at, x);
  } else {
    store4(static_cast<float*>(a.o) + at, x);
  }
}

// The work of a block: a chunk of the keys that a tile of rows sees, and kOut columns of values.
struct Piece {
  std::int32_t chunk, slice;  // slice: its first column
  std::int64_t row_tile;
  RowTile tile;

  __device__ Piece(const Attention& a, std::int64_t at, std::int32_t columns)
      : chunk(static_cast<std::int32_t>(at % a.chunks)),
        slice(static_cast<std::int32_t>(at / a.chunks % a.slices) * columns),
        row_tile(at / a.chunks / a.slices),
        tile(a, row_tile) {}
};

// What a block has seen of a chunk's keys becomes rows of o, or partial results.
template <class T, int kOut>
__device__ void write_piece(const Attention& a, const Piece& piece,
                            const WarpTile<Stored<T>, kOut>& state, float* results) {
  const RowTile& tile = piece.tile;
  const std::int32_t slice = piece.slice;
  // By way of shared memory, so that a warp writes whole rows.
  constexpr int kStride = kResultStride<kOut>;
  __shared__ float2 stats[kRows];
  __shared__ float factors[kRows];
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int r = warp * 16 + h * 8 + lane / 4;
#pragma unroll
    for (int n = 0; n < kOut / 8; ++n) {
      *reinterpret_cast<float2*>(results + r * kStride + n * 8 + lane % 4 * 2) =
          make_float2(state.out[n][2 * h], state.out[n][2 * h + 1]);
    }
    if (lane % 4 == 0) stats[r] = make_float2(state.max[h], state.sum[h]);
  }
  __syncthreads();
  const bool partial = tile.chunks > 1;
  const std::int64_t first_partial = (piece.row_tile * a.chunks + piece.chunk) * kRows;
  if (threadIdx.x < tile.rows) {
    const auto r = static_cast<std::int32_t>(threadIdx.x);
    const float2 own = stats[r];
    if (!partial) {
      const Finish f = finish(a, tile.head(a, r), own.x, own.y);
      factors[r] = f.factor;
      if (a.lse != nullptr && slice == 0) a.lse[tile.lse_at(a, r)] = f.lse;
    } else {
      factors[r] = own.y == 0 ? 0 : 1 / own.y;
      if (slice == 0)
        a.partial_lse[first_partial + r] = own.y == 0 ? -INFINITY : own.x + log2f(own.y);
    }
  }
  __syncthreads();
  const std::int32_t width = min(a.Dv - slice, kOut);
  constexpr int kQuads = kOut / 4;
  if (partial || a.vector_o) {
    for (int i = threadIdx.x; i < tile.rows * kQuads; i += kThreads) {
      const int r = i / kQuads, d = i % kQuads * 4;
      if (d >= width) continue;
      const float f = factors[r];
      float4 x = load4(results + r * kStride + d);
      x = make_float4(x.x * f, x.y * f, x.z * f, x.w * f);
      if (partial) {
        store4(a.partial + (first_partial + r) * a.partial_width + slice + d, x);
        continue;
      }
      store_results<T>(a, tile.offset(a, a.so, r) + slice + d, x);
    }
    return;
  }
  for (int i = threadIdx.x; i < tile.rows * kOut; i += kThreads) {
    const int r = i / kOut, d = i % kOut;
    if (d < width)
      put_result<T>(a, tile.offset(a, a.so, r) + slice + d, results[r * kStride + d] * factors[r]);
  }
}

template <class T, int kOut>
__device__ void attend_piece(const Attention& a, std::int64_t at, unsigned char* memory) {
  using S = Stored<T>;
  using State = WarpTile<S, kOut>;
  const Piece piece(a, at, kOut);
  const RowTile& tile = piece.tile;
  const std::int32_t slice = piece.slice;
  if (tile.rows == 0 || piece.chunk >= tile.chunks) return;

  const std::int32_t row_bytes = a.stride_bytes();
  S* q = reinterpret_cast<S*>(memory);
  S* k = reinterpret_cast<S*>(memory + a.keys_at);
  S* v = reinterpret_cast<S*>(memory + a.values_at);
  const auto stride = static_cast<std::int32_t>(row_bytes / sizeof(S));
  const auto padded = static_cast<std::int32_t>(a.score_steps * (64 / sizeof(S)));
  const T* queries = static_cast<const T*>(a.q);
  const T* keys =
      static_cast<const T*>(a.k) + tile.b * a.sk.b + tile.kv * a.sk.h + tile.k_first * a.sk.n;
  const T* values = static_cast<const T*>(a.v) + tile.b * a.sv.b + tile.kv * a.sv.h +
                    tile.k_first * a.sv.n + slice;
  const auto stage_keys = [&](std::int32_t j) {
    const T* from = keys + j * a.sk.n;
    stage<kKeys, T>(k, {a.D, padded, stride, a.vector_k}, min(tile.keys.end - j, kKeys), from,
                    a.sk.n);
  };
  const auto stage_values = [&](std::int32_t j) {
    const T* from = values + j * a.sv.n;
    stage<kKeys, T>(v, {min(a.Dv - slice, kOut), kOut, State::kStride, a.vector_v},
                    min(tile.keys.end - j, kKeys), from, a.sv.n);
  };

  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const RowView view[2] = {row_view(a, tile, warp * 16 + lane / 4),
                           row_view(a, tile, warp * 16 + 8 + lane / 4)};
  float scale = a.scale;
  if (a.scales != nullptr) scale *= a.scales[0] * a.scales[1];
  const bool adjusts = a.adjusts_scores();
  State state;
  std::int32_t j = tile.keys.begin + piece.chunk * a.tiles_per_chunk * kKeys;
  const auto end = static_cast<std::int32_t>(
      min(std::int64_t{j} + std::int64_t{a.tiles_per_chunk} * kKeys, std::int64_t{tile.keys.end}));
  if (j < end) {
    stage<kRows, T>(q, {a.D, padded, stride, a.vector_q}, tile.rows,
                    [&](std::int32_t r) { return queries + tile.offset(a, a.sq, r); });
    stage_keys(j);
  }
  commit_copies();
  if (j < end) stage_values(j);
  commit_copies();
  for (; j < end; j += kKeys) {
    const std::int32_t next = j + kKeys;
    int from[2], to[2];  // columns of the tile that a row sees
    bool none = true, all = true;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      from[h] = view[h].keys.begin - j;
      to[h] = view[h].keys.end - j;
      none = none && (to[h] <= max(from[h], 0) || from[h] >= kKeys);
      all = all && from[h] <= 0 && to[h] >= kKeys;
    }
    const bool idle = __all_sync(kAll, none), masked = !__all_sync(kAll, all);
    wait_copies<1>();
    __syncthreads();  // the keys are there
    if (!idle) {
      score_products<S>(state.p, shared_address(q) + warp * 16 * row_bytes, shared_address(k),
                        row_bytes, a.score_steps);
    }
    __syncthreads();  // and have been used
    if (next < end) stage_keys(next);
    commit_copies();
    if (!idle) {
      float left = scale * kLog2E;
      if (adjusts) {
        adjust(state.p, a, scale, view, j);
        left = 1;
      }
      if (masked) {
        state.template weights<true>(left, from, to);
      } else {
        state.template weights<false>(left, from, to);
      }
    }
    wait_copies<1>();
    __syncthreads();  // the values are there
    if (!idle) state.add_values(v, masked);
    __syncthreads();  // and have been used
    if (next < end) stage_values(next);
    commit_copies();
  }
  wait_copies<0>();
  __syncthreads();
  state.add_up_columns();
  write_piece<T>(a, piece, state, reinterpret_cast<float*>(memory));
}

// A warp merges the chunks of four rows: a lane has a row, and every eighth chunk.
template <class T>
__device__ void merge(const Attention& a, std::int64_t at) {
  constexpr int kGroups = kRows / 4, kChunkLanes = kWarp / 4;
  const RowTile tile(a, at / kGroups);
  const auto first = static_cast<std::int32_t>(at % kGroups) * 4;
  if (first >= tile.rows || tile.chunks == 1) return;
  const int lane = threadIdx.x % kWarp, own = first + lane % 4;
  const std::int64_t partial = at / kGroups * a.chunks * kRows;
  float weight[kMostChunks / kChunkLanes];
  float max = -INFINITY, sum = 0;
#pragma unroll
  for (int c = 0; c < kMostChunks / kChunkLanes; ++c) {
    const int chunk = c * kChunkLanes + lane / 4;
    weight[c] = -INFINITY;
    if (chunk < tile.chunks && own < tile.rows)
      weight[c] = a.partial_lse[partial + chunk * kRows + own];
    max = fmaxf(max, weight[c]);
  }
  for (int offset = 4; offset < kWarp; offset *= 2)
    max = fmaxf(max, __shfl_xor_sync(kAll, max, offset));
  const float base = max == -INFINITY ? 0.0f : max;
#pragma unroll
  for (float& w : weight) {
    w = exp2_fast(w - base);
    sum += w;
  }
  for (int offset = 4; offset < kWarp; offset *= 2) sum += __shfl_xor_sync(kAll, sum, offset);
  Finish f{0, 0};
  if (own < tile.rows) {
    f = finish(a, tile.head(a, own), max, sum);
    if (lane < 4 && a.lse != nullptr) a.lse[tile.lse_at(a, own)] = f.lse;
  }
  for (int row = 0; row < 4 && first + row < tile.rows; ++row) {
    const float factor = __shfl_sync(kAll, f.factor, row);
    const float* from = a.partial + (partial + first + row) * a.partial_width;
    const std::int64_t to = tile.offset(a, a.so, first + row);
    for (std::int32_t d = lane; d - lane < a.Dv; d += kWarp) {
      float x = 0;
#pragma unroll
      for (int c = 0; c < kMostChunks / kChunkLanes; ++c) {
        const int chunks = min(tile.chunks - c * kChunkLanes, kChunkLanes);
        for (int i = 0; i < chunks; ++i) {
          const float w = __shfl_sync(kAll, weight[c], i * 4 + row);
          const int chunk = c * kChunkLanes + i;
          if (d < a.Dv) x += w * from[std::int64_t{chunk} * kRows * a.partial_width + d];
        }
      }
      if (d < a.Dv) put_result<T>(a, to + d, x * factor);
    }
  }
}

template <class T, int kOut>
__global__ void __launch_bounds__(kThreads, sizeof(T) == 4 || kOut > 64 ? 2 : 3)
    attend(const __grid_constant__ Attention a) {
  extern __shared__ __align__(16) unsigned char memory[];
  attend_piece<T, kOut>(a, blockIdx.x, memory);
  if (a.chunks == 1) return;
  cooperative_groups::this_grid().sync();
  const std::int64_t groups = std::int64_t{a.items} * a.Hkv * a.row_tiles * (kRows / 4);
  for (std::int64_t at = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; at < groups;
       at += std::int64_t{gridDim.x} * kWarps) {
    merge<T>(a, at);
  }
}

// --- the host ---

std::int64_t heads_of(const Attention& a) { return std::int64_t{a.items} * a.Hkv; }

// Chunks that take least, by what memory and the busiest multiprocessor take, if all blocks can
// wait for each other. A tile of 64 by 64 costs 2 * 64 * 64 (D + Dv) flops, of which an SM of an
// H200 does 3,784 a clock, or 1,892 / 3 where fp32 is three products of tf32, and some 400 clocks
// of softmax and copies. A block costs as much as a tile beside.
void plan_chunks(Attention& a, std::int64_t limit, int out, int element) {
  a.chunks = 1;
  a.tiles_per_chunk = static_cast<std::int32_t>(std::max<std::int64_t>(1, ceil_div(a.Nk, kKeys)));
  const std::int64_t heads = heads_of(a), pieces = heads * a.row_tiles * a.slices;
  if (pieces * 2 > limit) return;
  std::vector<std::int64_t> counts;
  std::int64_t most = 1, total = 0;
  for (std::int32_t t = 0; t < a.row_tiles; ++t) {
    const std::int32_t first = t * kRows;
    const std::int32_t last = std::min(first + kRows, a.Nq * a.group) - 1;
    counts.push_back(visible_tiles(first, last, a.group, a.Nq, a.Nk, a.causal, a.window).count);
    most = std::max(most, counts.back());
    total += counts.back();
  }
  const double width = a.score_steps * 64 / element + out;
  const double clocks = 400 + 2.0 * kRows * kKeys * width / (element == 4 ? 1892.0 / 3 : 3784.0);
  const double bytes_a_clock = 4.8e12 / 1.98e9;
  const double share = static_cast<double>(total * heads * a.slices) / multiprocessors();
  constexpr std::int64_t kMostStored = 2'150'000;  // bytes, beyond 8 chunks
  double best = INFINITY;
  for (std::int64_t wanted = 1; wanted <= kMostChunks; ++wanted) {
    const std::int64_t per_chunk = ceil_div(most, wanted), chunks = ceil_div(most, per_chunk);
    const std::int64_t stored = heads * a.row_tiles * chunks * kRows * (a.partial_width + 1) * 4;
    if (pieces * chunks > limit || (chunks > 8 && stored > kMostStored)) break;
    double partial = 0, blocks = 0;
    for (const std::int64_t n : counts) {
      const auto own = static_cast<double>(std::max<std::int64_t>(1, ceil_div(n, per_chunk)));
      blocks += own;
      if (own > 1) partial += own;
    }
    const double row_bytes = (a.D + std::min(a.Dv, out)) * static_cast<double>(element);
    const double read =
        static_cast<double>(total) * kKeys * row_bytes + blocks * kRows * a.D * element;
    const double merged = 2 * partial * kRows * (std::min(a.Dv, out) + 1) * 4;
    const double memory = static_cast<double>(heads * a.slices) * (read + merged) / bytes_a_clock;
    const double busiest = std::max(static_cast<double>(per_chunk), share) * clocks + clocks;
    const double cost = std::max(memory, busiest);
    if (cost >= best) continue;
    best = cost;
    a.chunks = static_cast<std::int32_t>(chunks);
    a.tiles_per_chunk = static_cast<std::int32_t>(per_chunk);
  }
}

template <class T, int kOut>
int launch(assay_ctx* ctx, Attention& a) {
  using S = Stored<T>;
  const auto kernel = attend<T, kOut>;
  a.slices = static_cast<std::int32_t>(std::max<std::int64_t>(1, ceil_div(a.Dv, kOut)));
  a.keys_at = kRows * a.stride_bytes();
  a.values_at = a.keys_at + kKeys * a.stride_bytes();
  const std::int64_t tiles =
      std::int64_t{a.values_at} + kKeys * WarpTile<S, kOut>::kStride * static_cast<int>(sizeof(S));
  const std::int64_t bytes = std::max<std::int64_t>(tiles, 4 * kRows * kResultStride<kOut>);
  constexpr std::int64_t kMostShared = 226 << 10;
  if (bytes > kMostShared) return ASSAY_ENOTSUP;  // D above 368, or 800 of 16 bits
  int resident = 0;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(bytes)) != cudaSuccess ||
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(
          &resident, kernel, kThreads, static_cast<std::size_t>(bytes)) != cudaSuccess) {
    return ASSAY_EINTERNAL;
  }
  plan_chunks(a, std::int64_t{resident} * multiprocessors(), kOut, sizeof(S));
  const std::int64_t rows = heads_of(a) * a.row_tiles * a.chunks * kRows;
  const Scratch partial(
      ctx, a.chunks == 1 ? 0 : static_cast<std::size_t>(rows * (a.partial_width + 1)) * 4);
  if (partial.failed()) return ASSAY_ENOMEM;
  a.partial = partial.as<float>();
  if (a.chunks > 1) a.partial_lse = a.partial + rows * a.partial_width;
  const std::int64_t blocks = heads_of(a) * a.row_tiles * a.slices * a.chunks;
  if (blocks > INT_MAX) return ASSAY_ENOTSUP;
  const dim3 grid(static_cast<unsigned>(blocks)), block(kThreads);
  if (a.chunks == 1) {
    kernel<<<grid, block, static_cast<std::size_t>(bytes), stream_of(ctx)>>>(a);
  } else {
    void* arguments[] = {&a};
    cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(kernel), grid, block, arguments,
                                static_cast<std::size_t>(bytes), stream_of(ctx));
  }
  return launch_status();
}

// With the narrowest of kOuts that has room for the values of a row, or slices of the widest.
template <class T, int kOut, int... kWider>
int launch_narrowest(assay_ctx* ctx, Attention& a) {
  if constexpr (sizeof...(kWider) > 0) {
    if (a.Dv > kOut) return launch_narrowest<T, kWider...>(ctx, a);
  }
  return launch<T, kOut>(ctx, a);
}

template <class T, int... kOuts>
int launch_type(assay_ctx* ctx, Attention& a) {
  constexpr std::int32_t kWidest = 2048;  // far above what shared memory has room for
  if (a.D > kWidest) return ASSAY_ENOTSUP;
  a.score_steps =
      std::max(1, static_cast<std::int32_t>(ceil_div(a.D * std::int64_t{sizeof(Stored<T>)}, 64)));
  return launch_narrowest<T, kOuts...>(ctx, a);
}

bool valid(const fa_params* p, std::int64_t queries, std::int64_t keys, const void* q,
           const void* k, const void* v, const void* o) {
  if (!valid_sizes(p, queries, keys)) return false;
  const bool any_q = queries > 0 && p->Hq > 0, any_k = keys > 0 && p->Hkv > 0;
  return (q != nullptr || !any_q || p->D == 0) && (k != nullptr || !any_k || p->D == 0) &&
         (v != nullptr || !any_k || p->Dv == 0) && (o != nullptr || !any_q || p->Dv == 0);
}
bool valid(const fa_params* p, const void* q, const void* k, const void* v, const void* o) {
  return p != nullptr && valid(p, p->B * p->Nq, p->B * p->Nk, q, k, v, o);
}

struct Arrays {
  const void *q, *k, *v;
  void* o;
  float* lse;
};

// Extras are set by the caller. kOuts: the widths of output rows that there are kernels for,
// ascending; kFp8: whether there are kernels of fp8 too.
template <bool kFp8, int... kOuts>
int forward(assay_ctx* ctx, const fa_params& p, const Arrays& arrays, Attention a) {
  const bool fp8 = a.scales != nullptr;
  if (p.dtype != ASSAY_F32 && p.dtype != ASSAY_BF16 && (p.dtype != ASSAY_F16 || fp8))
    return ASSAY_ENOTSUP;
  if (p.B == 0 || p.Hq == 0 || p.Nq == 0) return ASSAY_OK;
  const std::int64_t group = p.Hq / p.Hkv, rows = p.Nq * group;
  for (const std::int64_t n : {p.B, p.Hq, rows, p.Nk, p.D, p.Dv, p.B * p.Hq}) {
    if (n > kMostPositions) return ASSAY_ENOTSUP;
  }
  a.q = arrays.q;
  a.k = arrays.k;
  a.v = arrays.v;
  a.o = arrays.o;
  a.lse = arrays.lse;
  set_shape(a, p, group);
  a.bf16_output = p.dtype == ASSAY_BF16;
  const std::int64_t output = p.dtype == ASSAY_F32 ? 4 : 2, input = fp8 ? 1 : output;
  const std::int64_t piece = fp8 ? 8 : 16;
  a.vector_q = aligned(a.q, a.sq, p.D, input, piece);
  a.vector_k = aligned(a.k, a.sk, p.D, input, piece);
  a.vector_v = aligned(a.v, a.sv, p.Dv, input, piece);
  a.vector_o = aligned(a.o, a.so, p.Dv, output, 4 * output);
  a.row_tiles = static_cast<std::int32_t>(ceil_div(rows, kRows));
  a.partial_width = static_cast<std::int32_t>(round_up(p.Dv, 4));
  if constexpr (kFp8) {
    if (fp8) return launch_type<__nv_fp8_e4m3, kOuts...>(ctx, a);
  }
  if (p.dtype == ASSAY_F32) return launch_type<float, kOuts...>(ctx, a);
  return p.dtype == ASSAY_BF16 ? launch_type<__nv_bfloat16, kOuts...>(ctx, a)
                               : launch_type<__half, kOuts...>(ctx, a);
}

}  // namespace
