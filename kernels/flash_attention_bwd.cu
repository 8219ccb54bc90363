// Softmax attention, backward, in one launch; the gradient of a bias takes a second one.
//
// The shape. Two heads of N 1,024 queries and keys, D 64, causal, fp32: 4.2 MB of q, k, v, o and
// dout, and of the gradients of q, k and v, 0.9 us of an H200's 4.8 TB/s; 1.05 M visible pairs of
// 10 D flops each in five products, 0.67 Gflop, 10 us of its 67 Tflop/s of fp32. Arithmetic is
// the limit, and tensor cores move it: fp32 as three products of tf32 takes 4.1 us of 495
// Tflop/s. What a launch costs is 3 us.
//
// Two sides, seven products. dk and dv are sums over queries, dq is one over keys. A block has a
// side's tile of 64 rows, 16 a warp, and passes over the other side in steps of 64, or 32 where
// its columns are 128: scores and dP, two products; weights and their gradients, in the registers
// of mma's accumulators, which are the layout of its multiplicand too; then sums of two products
// (keys) or one (queries). Both sides are one function: keys see queries as queries see keys. So
// nothing of size Nq x Nk exists, no sum needs an atomic, and two runs agree. Scores and dP of a
// pair are computed on both sides, 6.1 us of tensor cores instead of 4.3 with the halves of
// masked tiles.
//
// Phases. delta = dout . o is once per row, eight lanes a row; a barrier of the grid; the pieces;
// a barrier; the sums of chunks. A launch for each of the three would cost 6 us more. A query
// with a sink has it in lse, and a gradient of lse is taken off delta.
//
// Chunks. 32 tiles of keys and 32 of queries, with up to 16 steps each, are too few for 132
// multiprocessors, and uneven. So what a tile sees is cut into chunks, and a table in the
// launch's parameters says which piece is which. A chunk leaves partial sums, 16 KB for dq, 32 KB
// for dk and dv, written and read once; where outputs are fp32, chunk 0 leaves them there, so
// that scratch is for the others. plan() takes the chunks at which memory, tensor cores on the
// average, or those of the longest piece take least. Scratch stays below dq in fp32 and 8 times
// dk, or 2 MiB: O(N).
//
// Bytes. A step reads 32 KB of the other side, a piece 32 KB of its own. Above: 544 steps and 182
// pieces are 23.8 MB, partial sums 8.7 MB, delta and the results 3.6 MB, and each look at a
// barrier by a block that waits is a sector, 1 MB: 37 MB, 7.7 us. 128 rows a block would halve
// the steps' bytes and double the partial sums': no less.
//
// Columns. D and Dv up to 64 are one slice. Wider ones are slices of 128, or of 64, whichever
// plan() finds faster: slices compute scores once each, but their pieces are shorter and their
// partial sums smaller. Four heads of 256 on one key head, D 128, have few tiles: 5.9 us instead
// of 7.6.
//
// Stages. Both arrays of the other side have a stage, of one tile. cp.async brings the next
// values (dout) while rows of scores are multiplied, and the next rows of scores while values
// are. 70 KB where D is 64, so that the two blocks that registers have room for share a
// multiprocessor.
//
// Precision. fp32 is hi + lo, both tf32, as in attention forward, and so are scores' long sums.
// Weights and gradients of bf16 and f16 are two of that type, hi and lo. f16 has a narrow range,
// and gradients none: a warp's multiplicands are scaled by a power of 2 that keeps the largest so
// far below 2^14, and its sums are rescaled when it grows.
//
// NaN. What is masked is selected away. A masked row of the other side is still multiplied, by 0,
// which leaves NaN what it is: in masked tiles what is not finite is taken for 0. Where a query
// sees it, in k or q, the gradient of the weight is NaN anyway; in dout, dv needs it by columns:
// weights of masked pairs are -0, and a product of ones counts what a key sees, as in attention
// forward.
//
// Banks. Staged rows are padded by 16 bytes, see attention forward. Replays are left where copies
// take two rows at a time, and in the sums of a bias that one value serves.
//
// Tried, with the modelled time of the first shape, 11.0 us, of which 3 us are the launch and the
// issue of instructions is the limit (7.96 us; memory 7.66): positions of 64 bits, divisions in
// each step, loops that look for a piece's place and a warp for each row of delta, 12.3 us.
// Stores of two floats that the compiler took apart: 1 % more sectors.
//
// Considered and rejected: five products, with dq's parts written by the blocks of keys. That is
// 4.3 us of tensor cores, but a part of 16 KB, written and read, for each pair of tiles: as many
// bytes as the other side's steps, and scratch of a dq for each tile of keys, or an order in
// which blocks wait to add. The longest piece of three steps would take 6.3 us, memory 5.6: a
// microsecond less, for a scratch that grows with N^2. Atomics for dq: the same bytes, and two
// runs differ. delta in each block of keys: half as many bytes again, for one barrier. On
// hardware ptxas keeps some 10 to 60 bytes a thread in local memory; the simulator, which runs
// PTX, has none.
#include <cooperative_groups.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "abi.h"
#include "common/attention_call.h"
#include "common/attention_forward.h"
#include "common/attention_tiles.h"
#include "common/device.h"
#include "common/warp_attention.h"

namespace {

// Positions of the other side that a step takes: of a narrow output, or a wide one whose sums take
// most registers.
template <int kOut>
constexpr int kStep = kOut <= 64 ? 64 : 32;
constexpr int kGroupRows = 4;  // that a warp merges

// --- what the host knows ---

// A side of the pairs: keys, for dk and dv, or queries, for dq. A head's tiles of kRows positions
// are cut into pieces, each of which passes over steps of the other side.
struct Side {
  std::int32_t heads, tiles, pieces;  // pieces: of a head
  std::int32_t slots;                 // of a head, for the partial results of pieces
  std::int32_t first;                 // of its pieces in the table, where work is cut
  std::int32_t merged;                // tiles of a head that are merged
  float* partial;                     // [slice, head, slot, array, kRows, kOut]
};

// A piece of a head where work is cut: chunk `chunk` of `chunks` of a tile. Its results go to slot
// `slot`; those of chunk 0 to the output where that is fp32, so that slots begin with chunk 1.
struct Chunk {
  std::uint16_t tile, chunk, chunks, slot;
};
constexpr int kMostPieces = 288;  // of a head of both sides: two blocks a multiprocessor

struct Backward {
  const void *dout, *q, *k, *v, *o;
  const float* lse;
  void *dq, *dk, *dv;
  assay_stride sq, sk, sv, so;
  std::int64_t total_q;  // rows of all items
  std::int32_t window;   // 0: none
  std::int32_t items, Hq, Hkv, group, Nq, Nk, D, Dv;
  float scale;
  bool causal, vector_q, vector_k, vector_v, vector_o;  // aligned to 16 bytes
  bool wide_q, wide_k, wide_v;                          // outputs, aligned to 4 elements
  // Extras, null or 0 where there are none.
  float softcap;
  const float *alibi, *dlse, *bias;
  std::int64_t bias_b, bias_h, bias_i, bias_j;  // strides, 0 where one value serves all
  const std::int64_t *kv_len, *cu_q, *cu_k;
  // The cut of the work.
  Side keys, queries;
  bool cut;
  Chunk chunks[kMostPieces];          // of keys, then of queries
  std::uint16_t merged[kMostPieces];  // those with chunk 0 of several, likewise
  std::int32_t slices;
  std::int32_t score_steps, value_steps;  // of 64 bytes of a row of q and k, and of v and dout
  float* delta;                           // as lse

  __host__ __device__ std::int32_t score_bytes() const { return score_steps * 64 + 16; }
  __host__ __device__ std::int32_t value_bytes() const { return value_steps * 64 + 16; }
  __host__ __device__ bool adjusts_scores() const {
    return softcap > 0 || alibi != nullptr || bias != nullptr;
  }
};

// --- what is visible ---

// Queries that see key j.
__host__ __device__ Span visible_queries(std::int32_t j, std::int32_t Nq, std::int32_t Nk,
                                         bool causal, std::int32_t window) {
  const std::int32_t at = j - (Nk - Nq);  // the first query that causality admits
  return {causal ? clamp_to(at, Nq) : 0, window > 0 ? clamp_to(at + window, Nq) : Nq};
}

// What positions `first` up to `end` of a side see of the other, or are seen by.
template <bool kOfKeys>
__host__ __device__ Span other_side(std::int32_t first, std::int32_t end, std::int32_t Nq,
                                    std::int32_t Nk, bool causal, std::int32_t window) {
  if (first >= end) return {0, 0};
  const auto of = [&](std::int32_t n) {
    return kOfKeys ? visible_queries(n, Nq, Nk, causal, window)
                   : visible_keys(n, Nq, Nk, causal, window);
  };
  const Span span{of(first).begin, of(end - 1).end};
  return span.end > span.begin ? span : Span{0, 0};
}

__host__ __device__ std::int32_t steps_of(const Span& span, std::int32_t step) {
  return (span.end - span.begin + step - 1) / step;
}

// Attention of an item or of a packed sequence.
struct Sequence {
  std::int32_t b, Nq, Nk;
  std::int64_t q_first, k_first;  // positions before it

  __device__ Sequence(const Backward& a, std::int32_t item)
      : b(item), Nq(a.Nq), Nk(a.Nk), q_first(0), k_first(0) {
    if (a.cu_q != nullptr) {
      q_first = a.cu_q[b];
      k_first = a.cu_k[b];
      Nq = static_cast<std::int32_t>(a.cu_q[b + 1] - q_first);
      Nk = static_cast<std::int32_t>(a.cu_k[b + 1] - k_first);
    }
    if (a.kv_len != nullptr) Nk = static_cast<std::int32_t>(a.kv_len[b]);
  }

  __device__ std::int64_t query_at(const assay_stride& s, std::int32_t h, std::int32_t i) const {
    return b * s.b + h * s.h + (q_first + i) * s.n;
  }
  __device__ std::int64_t key_at(const assay_stride& s, std::int32_t h, std::int32_t j) const {
    return b * s.b + h * s.h + (k_first + j) * s.n;
  }
  __device__ std::int64_t lse_at(const Backward& a, std::int32_t h, std::int32_t i) const {
    if (a.cu_q != nullptr) return h * a.total_q + q_first + i;
    return (std::int64_t{b} * a.Hq + h) * a.Nq + i;
  }
};

// --- 1: delta ---

__device__ float to_float(float x) { return x; }
__device__ float to_float(__half x) { return __half2float(x); }
__device__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

// delta_i = dout_i . o_i, and what flows into lse is taken off: eight lanes for each row.
template <class T>
__device__ void make_delta(const Backward& a) {
  constexpr std::uint32_t kLanes = 8, kBlockRows = kThreads / kLanes;
  const auto rows = static_cast<std::uint32_t>(a.Hq * a.total_q);
  const auto heads = static_cast<std::uint32_t>(a.Hq);
  const std::uint32_t positions = a.cu_q != nullptr ? a.total_q : a.Nq;
  const auto lane = static_cast<std::int32_t>(threadIdx.x % kLanes);
  for (std::uint32_t first = blockIdx.x * kBlockRows; first < rows;
       first += gridDim.x * kBlockRows) {
    const std::uint32_t row = first + threadIdx.x / kLanes;
    float sum = 0;
    if (row < rows) {
      const std::uint32_t head = row / positions, b = head / heads;
      const std::int64_t at =
          b * a.so.b + (head - b * heads) * a.so.h + (row - head * positions) * a.so.n;
      const T* dout = static_cast<const T*>(a.dout) + at;
      const T* o = static_cast<const T*>(a.o) + at;
      for (std::int32_t d = lane; d < a.Dv; d += kLanes) sum += to_float(dout[d]) * to_float(o[d]);
    }
    for (int offset = kLanes / 2; offset > 0; offset /= 2)
      sum += __shfl_xor_sync(kAll, sum, offset);
    if (row >= rows || lane != 0) continue;
    a.delta[row] = a.dlse != nullptr ? sum - a.dlse[row] : sum;
  }
}

// --- weights and their gradients ---

// A pair's query and key are `query` and `key` and the thread's row and column of the tile, or
// column and row.
struct Place {
  std::int32_t b, head, query, key, shift;  // shift: Nk - Nq
};

// Columns of the tile that each of the thread's rows sees.
struct Sight {
  int from[2], to[2];
  __device__ bool sees(int h, int column) const { return column >= from[h] && column < to[h]; }
};

// Of a query: the log-sum-exp, of base 2, and delta.
struct Query {
  float lse, delta;
};

__device__ Query load_query(const Backward& a, const Sequence& s, std::int32_t h, std::int32_t i) {
  const std::int64_t at = s.lse_at(a, h, i);
  return {a.lse[at] * kLog2E, a.delta[at]};
}

// Scores s become weights, and dp their gradients. of_row: of the thread's rows, where rows are
// queries; of_column: of the tile's columns, where those are.
template <bool kOfKeys, bool kMasked, bool kAdjusted, int kTiles>
__device__ void weigh(float (&s)[kTiles][4], float (&dp)[kTiles][4], const Backward& a,
                      const Place& place, const Sight& sight, const Query (&of_row)[2],
                      const Query* of_column) {
  const int t = threadIdx.x % 4, g = threadIdx.x % kWarp / 4, warp = threadIdx.x / kWarp;
  const float scale = a.scale * kLog2E;
  const float slope = kAdjusted && a.alibi != nullptr ? a.alibi[place.head] : 0;
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
    float4 columns = {};
    if (kOfKeys) columns = reinterpret_cast<const float4*>(of_column)[n * 4 + t];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int h = i / 2, column = n * 8 + 2 * t + i % 2;
      const bool visible = !kMasked || sight.sees(h, column);
      const Query query = !kOfKeys     ? of_row[h]
                          : i % 2 == 0 ? Query{columns.x, columns.y}
                                       : Query{columns.z, columns.w};
      float weight, factor = 1;
      if constexpr (kAdjusted) {
        const int row = warp * 16 + h * 8 + g;
        const std::int32_t qi = place.query + (kOfKeys ? column : row);
        const std::int32_t kj = place.key + (kOfKeys ? row : column);
        float x = s[n][i] * a.scale;
        if (a.softcap > 0) {
          // 1 - tanh^2, without the difference: it is small where the cap is reached.
          const float y = x / a.softcap, e = expf(-2 * fabsf(y));
          x = a.softcap * tanhf(y);
          factor = 4 * e / ((1 + e) * (1 + e));
        }
        if (a.alibi != nullptr) x -= slope * static_cast<float>(abs(qi + place.shift - kj));
        if (a.bias != nullptr && visible) {
          x += a.bias[place.b * a.bias_b + place.head * a.bias_h + qi * a.bias_i + kj * a.bias_j];
        }
        weight = exp2_fast(fmaf(x, kLog2E, -query.lse));
      } else {
        weight = exp2_fast(fmaf(s[n][i], scale, -query.lse));
      }
      float gradient = weight * (dp[n][i] - query.delta);
      if (kAdjusted) gradient *= factor;
      // Selected, not multiplied: what is masked may be NaN.
      s[n][i] = visible ? weight : kMaskedWeight;
      dp[n][i] = visible ? gradient : 0.0f;
    }
  }
}

template <bool kOfKeys, int kTiles>
__device__ void weigh(float (&s)[kTiles][4], float (&dp)[kTiles][4], const Backward& a,
                      const Place& place, const Sight& sight, bool masked, const Query (&of_row)[2],
                      const Query* of_column) {
  if (a.adjusts_scores()) {
    weigh<kOfKeys, true, true>(s, dp, a, place, sight, of_row, of_column);
  } else if (masked) {
    weigh<kOfKeys, true, false>(s, dp, a, place, sight, of_row, of_column);
  } else {
    weigh<kOfKeys, false, false>(s, dp, a, place, sight, of_row, of_column);
  }
}

template <int kTiles>
__device__ void clear(float (&x)[kTiles][4]) {
#pragma unroll
  for (auto& tile : x) {
#pragma unroll
    for (float& value : tile) value = 0;
  }
}

// Sums of a warp's 16 rows. The multiplicands of f16 are scaled by a power of 2 that keeps the
// largest so far below 2^14, as an online softmax keeps its maximum: gradients know no bounds.
template <class S, int kOut>
struct Sums {
  static constexpr bool kScaled = std::is_same_v<S, __half>;
  float x[kOut / 8][4];
  int shift;  // x is 2^shift times the sums

  __device__ Sums() : shift(kScaled ? 100 : 0) { clear(x); }

  __device__ static float power_of_2(int n) {
    return n < -126 ? 0.0f : __int_as_float((n + 127) << 23);
  }

  template <int kTiles>
  __device__ void scale(float (&p)[kTiles][4]) {
    if constexpr (kScaled) {
      unsigned largest = 0;
#pragma unroll
      for (const auto& tile : p) {
#pragma unroll
        for (const float value : tile) {
          const unsigned bits = __float_as_uint(value) & 0x7fffffff;
          largest = max(largest, bits < 0x7f800000 ? bits : 0);
        }
      }
      largest = __reduce_max_sync(kAll, largest);
      const int wanted = max(13 + 127 - static_cast<int>(largest >> 23), -100);
      if (wanted < shift) {
        multiply(power_of_2(wanted - shift));
        shift = wanted;
      }
      const float factor = power_of_2(shift);
#pragma unroll
      for (auto& tile : p) {
#pragma unroll
        for (float& value : tile) value *= factor;
      }
    }
  }

  __device__ void multiply(float factor) {
#pragma unroll
    for (auto& tile : x) {
#pragma unroll
      for (float& value : tile) value *= factor;
    }
  }
  __device__ void finish(float factor) { multiply(factor * power_of_2(-shift)); }
};

// --- results ---

// In assembly: the compiler takes some of them apart.
__device__ void store2(float* p, float x, float y) {
  asm volatile("st.global.v2.f32 [%0], {%1, %2};" ::"l"(p), "f"(x), "f"(y) : "memory");
}

// Row g + 8 h of a warp's sums to `to`, whose `width` elements exist: 0 of none. All lanes of the
// warp come here.
template <class T, int kOut>
__device__ void store_row(T* to, const float (&x)[kOut / 8][4], int h, std::int32_t width,
                          bool wide) {
  const int t = threadIdx.x % 4;
  if (sizeof(T) == 4 && wide) {
    float* at = reinterpret_cast<float*>(to) + 2 * t;
    const std::int32_t left = width - 2 * t;
#pragma unroll
    for (int n = 0; n < kOut / 8; ++n) {
      if (n * 8 < left) store2(at + n * 8, x[n][2 * h], x[n][2 * h + 1]);
    }
  } else if (wide) {
    // Four lanes have 16 columns, 4 bytes of each 8. They exchange, so that each has 8 in a row.
    const int from = threadIdx.x % kWarp / 4 * 4 + t % 2 * 2;
#pragma unroll
    for (int n = 0; n < kOut / 8; n += 2) {
      const std::uint32_t first = pack<T>(x[n][2 * h], x[n][2 * h + 1]);
      const std::uint32_t second = pack<T>(x[n + 1][2 * h], x[n + 1][2 * h + 1]);
      const uint2 a =
          make_uint2(__shfl_sync(kAll, first, from), __shfl_sync(kAll, first, from + 1));
      const uint2 b =
          make_uint2(__shfl_sync(kAll, second, from), __shfl_sync(kAll, second, from + 1));
      if (n * 8 + 4 * t < width) *reinterpret_cast<uint2*>(to + n * 8 + 4 * t) = t < 2 ? a : b;
    }
  } else {
#pragma unroll
    for (int n = 0; n < kOut / 8; ++n) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int d = n * 8 + 2 * t + e;
        if (d < width) put(to + d, x[n][2 * h + e]);
      }
    }
  }
}

// --- 2: the pieces ---

// The work of a block: a tile of a side, a chunk of what it sees, and kOut columns of its results.
struct GradientPiece {
  std::int32_t slice, head, tile, chunk, chunks;  // head: of all items
  std::int64_t slot;
};

// Chunk 0 leaves its sums in the output where that is fp32.
template <class T>
constexpr int kInPlace = std::is_same_v<T, float> ? 1 : 0;

template <bool kOfKeys>
__device__ GradientPiece piece_at(const Backward& a, const Side& side, std::uint32_t at) {
  const std::uint32_t all = at / side.pieces, slice = all / side.heads;
  const auto n = static_cast<std::int32_t>(at - all * side.pieces);
  GradientPiece piece{};
  piece.slice = static_cast<std::int32_t>(slice);
  piece.head = static_cast<std::int32_t>(all - slice * side.heads);
  if (!a.cut) {
    // Tiles that see most come first: the first keys and the last queries.
    piece.tile = kOfKeys ? n : side.tiles - 1 - n;
    piece.chunks = 1;
    return piece;
  }
  const Chunk chunk = a.chunks[side.first + n];
  piece.tile = chunk.tile;
  piece.chunk = chunk.chunk;
  piece.chunks = chunk.chunks;
  piece.slot = std::int64_t{all} * side.slots + chunk.slot;
  return piece;
}

// Steps of a side that a tile passes over: of keys, those of each query head of its group.
struct Steps {
  Span span;
  std::int32_t head, first;  // where the next one begins

  __device__ void advance(std::int32_t step) {
    first += step;
    if (first < span.end) return;
    first = span.begin;
    ++head;
  }
};

// Rows of an array as they are staged.
template <class T>
struct Rows {
  const T* data;
  std::int64_t step;  // elements from row to row
  std::int32_t width, row_bytes;
  bool vector;

  template <int kCount>
  __device__ void stage_to(unsigned char* to, std::int64_t first, std::int32_t n) const {
    constexpr int kSize = sizeof(T);
    const T* from = data + first;
    stage<kCount, T>(reinterpret_cast<T*>(to),
                     {width, (row_bytes - 16) / kSize, row_bytes / kSize, vector}, n, from, step);
  }
};

// Bytes of shared memory: own rows of q and v, then those of the other side, then its queries.
// Products read whole slices, behind the end of the last row too.
struct Layout {
  std::int32_t own_values, other_scores, other_values, queries, end;
  __host__ __device__ Layout(const Backward& a, int step, int slice_bytes) {
    const std::int32_t score = a.score_bytes(), value = a.value_bytes();
    const std::int32_t slices = a.slices * slice_bytes;
    own_values = kRows * score;
    other_scores = own_values + kRows * value;
    other_values = other_scores + step * score + (slices > score ? slices - score : 0);
    queries = other_values + step * value + (slices > value ? slices - value : 0);
    end = queries + step * static_cast<std::int32_t>(sizeof(Query));
  }
};

// out += p times `width` columns of staged rows from `at` on. Of a masked tile, what is not finite
// is left out; kSpoils puts it into the rows that see it.
template <bool kSpoils, class S, int kOut, int kTiles>
__device__ void add_rows(Sums<S, kOut>& out, float (&p)[kTiles][4], const S* at,
                         std::int32_t row_bytes, std::int32_t padded_bytes, bool masked) {
  constexpr int kSize = sizeof(S);
  out.scale(p);
  const std::int32_t pieces = max(0, min(padded_bytes, kOut * kSize)) / 16;
  if (masked && any_not_finite(at, row_bytes / kSize, kTiles * 8, pieces)) {
    add_products<true>(out.x, p, at, row_bytes / kSize);
    if (kSpoils) spoil(out.x, p, at, row_bytes / kSize, pieces * 16 / kSize);
  } else {
    add_products<false>(out.x, p, at, row_bytes / kSize);
  }
}

// What a piece stages: its own rows, once, and a step's of the other side.
template <class T, int kOut, bool kOfKeys>
struct Stages {
  static constexpr int kCols = kStep<kOut>;
  const Backward& a;
  const Sequence& seq;
  std::int32_t own_head, key_head;
  unsigned char* memory;
  Layout layout;
  Rows<T> q, k, v, dout;

  __device__ Stages(const Backward& all, const Sequence& sequence, std::int32_t head,
                    unsigned char* shared)
      : a(all),
        seq(sequence),
        own_head(head),
        key_head(kOfKeys ? head : head / all.group),
        memory(shared),
        layout(all, kCols, kOut * static_cast<int>(sizeof(T))),
        q{static_cast<const T*>(a.q), a.sq.n, a.D, a.score_bytes(), a.vector_q},
        k{static_cast<const T*>(a.k), a.sk.n, a.D, a.score_bytes(), a.vector_k},
        v{static_cast<const T*>(a.v), a.sv.n, a.Dv, a.value_bytes(), a.vector_v},
        dout{static_cast<const T*>(a.dout), a.so.n, a.Dv, a.value_bytes(), a.vector_o} {}

  __device__ unsigned char* own_values() const { return memory + layout.own_values; }
  __device__ unsigned char* other_scores() const { return memory + layout.other_scores; }
  __device__ unsigned char* other_values() const { return memory + layout.other_values; }
  __device__ Query* queries() const { return reinterpret_cast<Query*>(memory + layout.queries); }

  __device__ void own(std::int32_t first, std::int32_t rows) const {
    if (kOfKeys) {
      k.template stage_to<kRows>(memory, seq.key_at(a.sk, own_head, first), rows);
      v.template stage_to<kRows>(own_values(), seq.key_at(a.sv, own_head, first), rows);
    } else {
      q.template stage_to<kRows>(memory, seq.query_at(a.sq, own_head, first), rows);
      dout.template stage_to<kRows>(own_values(), seq.query_at(a.so, own_head, first), rows);
    }
  }

  __device__ void scores(const Steps& at) const {
    const std::int32_t count = min(at.span.end - at.first, kCols);
    if (kOfKeys) {
      q.template stage_to<kCols>(other_scores(), seq.query_at(a.sq, at.head, at.first), count);
    } else {
      k.template stage_to<kCols>(other_scores(), seq.key_at(a.sk, key_head, at.first), count);
    }
  }

  // Queries come with what belongs to them.
  __device__ void values(const Steps& at) const {
    const std::int32_t count = min(at.span.end - at.first, kCols);
    if (kOfKeys) {
      dout.template stage_to<kCols>(other_values(), seq.query_at(a.so, at.head, at.first), count);
      const auto c = static_cast<std::int32_t>(threadIdx.x);
      if (c < kCols)
        queries()[c] = c < count ? load_query(a, seq, at.head, at.first + c) : Query{0, 0};
    } else {
      v.template stage_to<kCols>(other_values(), seq.key_at(a.sv, key_head, at.first), count);
    }
  }
};

// The first of a piece's steps, and how many there are.
template <bool kOfKeys>
__device__ std::int32_t find_steps(const Backward& a, const GradientPiece& piece, Steps& first,
                                   std::int32_t step) {
  const std::int32_t of_head = steps_of(first.span, step);
  const std::int32_t all = of_head * (kOfKeys ? a.group : 1);
  first.first = first.span.begin;
  if (piece.chunks == 1) return all;
  const std::int32_t begin = all * piece.chunk / piece.chunks;
  first.head += begin / of_head;
  first.first += begin % of_head * step;
  return all * (piece.chunk + 1) / piece.chunks - begin;
}

// To the outputs, or to the piece's slot. `first`: the tile's first position.
template <class T, int kOut, bool kOfKeys, int kValues>
__device__ void store_sums(const Backward& a, const Side& side, const GradientPiece& piece,
                           const Sequence& seq, std::int32_t own_head, std::int32_t first,
                           std::int32_t rows, Sums<T, kOut>& of_scores,
                           Sums<T, kValues>& of_values) {
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const std::int32_t slice = piece.slice * kOut;
  of_scores.finish(piece.chunks > 1 ? 1 : a.scale);
  if (kOfKeys) of_values.finish(1);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const std::int32_t r = warp * 16 + h * 8 + lane / 4;
    const std::int32_t width = r < rows ? a.D - slice : 0, values = r < rows ? a.Dv - slice : 0;
    if (piece.chunks > 1 && piece.chunk >= kInPlace<T>) {
      constexpr int kArrays = kOfKeys ? 2 : 1;
      float* to = side.partial + (piece.slot * kArrays * kRows + r) * kOut;
      store_row<float, kOut>(to, of_scores.x, h, width, true);
      if constexpr (kOfKeys)
        store_row<float, kOut>(to + kRows * kOut, of_values.x, h, values, true);
    } else if constexpr (kOfKeys) {
      store_row<T, kOut>(static_cast<T*>(a.dk) + seq.key_at(a.sk, own_head, first + r) + slice,
                         of_scores.x, h, width, a.wide_k);
      store_row<T, kOut>(static_cast<T*>(a.dv) + seq.key_at(a.sv, own_head, first + r) + slice,
                         of_values.x, h, values, a.wide_v);
    } else {
      store_row<T, kOut>(static_cast<T*>(a.dq) + seq.query_at(a.sq, own_head, first + r) + slice,
                         of_scores.x, h, width, a.wide_q);
    }
  }
}

template <class T, int kOut, bool kOfKeys>
__device__ void pass(const Backward& a, const Side& side, std::uint32_t at, unsigned char* memory) {
  constexpr int kCols = kStep<kOut>, kSize = sizeof(T);
  const GradientPiece piece = piece_at<kOfKeys>(a, side, at);
  const std::int32_t heads = kOfKeys ? a.Hkv : a.Hq, item = piece.head / heads;
  const Sequence seq(a, item);
  const std::int32_t own_head = piece.head - item * heads, first = piece.tile * kRows;
  // Results of keys behind an item's number of keys are 0.
  const std::int32_t exist = kOfKeys ? (a.cu_q != nullptr ? seq.Nk : a.Nk) : seq.Nq;
  const std::int32_t rows = min(exist - first, kRows);
  if (rows <= 0) return;
  const std::int32_t live = max(0, min((kOfKeys ? seq.Nk : seq.Nq) - first, kRows));
  Steps next{other_side<kOfKeys>(first, first + live, seq.Nq, seq.Nk, a.causal, a.window),
             kOfKeys ? own_head * a.group : own_head, 0};
  std::int32_t left = find_steps<kOfKeys>(a, piece, next, kCols);
  const Stages<T, kOut, kOfKeys> stages(a, seq, own_head, memory);

  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  Span sees[2];
  Query of_row[2] = {};
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const std::int32_t r = warp * 16 + h * 8 + lane / 4;
    sees[h] = {0, 0};
    if (r >= live) continue;
    if (kOfKeys) {
      sees[h] = visible_queries(first + r, seq.Nq, seq.Nk, a.causal, a.window);
    } else {
      sees[h] = visible_keys(first + r, seq.Nq, seq.Nk, a.causal, a.window);
      of_row[h] = load_query(a, seq, own_head, first + r);
    }
  }

  Sums<T, kOut> of_scores;                // dq, or dk
  Sums<T, kOfKeys ? kOut : 8> of_values;  // dv
  if (left > 0) {
    stages.own(first, live);
    stages.values(next);
    commit_copies();
    stages.scores(next);
  }
  commit_copies();
  const std::uint32_t own_rows = shared_address(memory) + warp * 16 * a.score_bytes();
  const std::uint32_t own_value_rows =
      shared_address(stages.own_values()) + warp * 16 * a.value_bytes();
  for (; left > 0; --left) {
    const std::int32_t j = next.first, head = next.head;
    next.advance(kCols);
    Sight sight;
    bool none = true, all = true;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      sight.from[h] = sees[h].begin - j;
      sight.to[h] = sees[h].end - j;
      none = none && (sight.to[h] <= max(sight.from[h], 0) || sight.from[h] >= kCols);
      all = all && sight.from[h] <= 0 && sight.to[h] >= kCols;
    }
    const bool idle = __all_sync(kAll, none), masked = !__all_sync(kAll, all);
    const bool more = left > 1;
    float s[kCols / 8][4], dp[kCols / 8][4];
    wait_copies<1>();
    __syncthreads();  // own rows and values are there
    if (!idle)
      score_products<T>(dp, own_value_rows, shared_address(stages.other_values()), a.value_bytes(),
                        a.value_steps);
    if (!kOfKeys) {
      __syncthreads();  // the values have been used
      if (more) stages.values(next);
      commit_copies();
    }
    wait_copies<kOfKeys ? 0 : 1>();
    __syncthreads();  // rows of scores are there
    if (!idle) {
      score_products<T>(s, own_rows, shared_address(stages.other_scores()), a.score_bytes(),
                        a.score_steps);
      const Place place{seq.b, head, kOfKeys ? j : first, kOfKeys ? first : j, seq.Nk - seq.Nq};
      weigh<kOfKeys>(s, dp, a, place, sight, masked, of_row, stages.queries());
    }
    if constexpr (kOfKeys) {
      if (!idle) {
        const std::int32_t skip = piece.slice * kOut * kSize;
        add_rows<true>(of_values, s, reinterpret_cast<const T*>(stages.other_values() + skip),
                       a.value_bytes(), a.value_bytes() - 16 - skip, masked);
      }
      __syncthreads();  // the values have been used
      if (more) stages.values(next);
      commit_copies();
    }
    if (!idle) {
      const std::int32_t skip = piece.slice * kOut * kSize;
      // A value that is not finite and visible has made the gradient of its weight NaN.
      add_rows<false>(of_scores, dp, reinterpret_cast<const T*>(stages.other_scores() + skip),
                      a.score_bytes(), a.score_bytes() - 16 - skip, masked);
    }
    __syncthreads();  // rows of scores have been used
    if (more) stages.scores(next);
    commit_copies();
  }
  wait_copies<0>();
  store_sums<T, kOut, kOfKeys>(a, side, piece, seq, own_head, first, rows, of_scores, of_values);
}

// --- 3: the sums of chunks ---

// A warp's kGroupRows rows of one array: `from` is theirs in the first of `slots`.
template <class T, int kOut, int kArrays>
__device__ void merge_rows(T* to, std::int64_t step, const float* from, std::int32_t slots,
                           std::int32_t rows, std::int32_t width, float factor, bool wide) {
  const int lane = threadIdx.x % kWarp;
  constexpr int kQuads = kOut / 4;
#pragma unroll
  for (int item = lane; item < kGroupRows * kQuads; item += kWarp) {
    const int r = item / kQuads, d = item % kQuads * 4;
    if (r >= rows || d >= width) continue;
    T* at = to + r * step + d;
    float4 sum = {};
    if constexpr (kInPlace < T >> 0) {
      if (wide) {
        sum = load4(at);
      } else {
        sum.x = at[0];
        if (d + 1 < width) sum.y = at[1];
        if (d + 2 < width) sum.z = at[2];
        if (d + 3 < width) sum.w = at[3];
      }
    }
    const float* slot = from + r * kOut + d;
    for (std::int32_t n = 0; n < slots; ++n, slot += kArrays * kRows * kOut) {
      const float4 x = load4(slot);
      sum = make_float4(sum.x + x.x, sum.y + x.y, sum.z + x.z, sum.w + x.w);
    }
    sum = make_float4(sum.x * factor, sum.y * factor, sum.z * factor, sum.w * factor);
    if (wide) {
      store4(at, sum);
    } else {
      put(at, sum.x);
      if (d + 1 < width) put(at + 1, sum.y);
      if (d + 2 < width) put(at + 2, sum.z);
      if (d + 3 < width) put(at + 3, sum.w);
    }
  }
}

// Items have one length each where work is cut.
template <class T, int kOut, bool kOfKeys>
__device__ void merge(const Backward& a, const Side& side, std::uint32_t at) {
  constexpr std::uint32_t kGroups = kRows / kGroupRows;
  constexpr int kArrays = kOfKeys ? 2 : 1;
  const std::uint32_t group = at % kGroups, all = at / kGroups / side.merged;
  const std::uint32_t n = at / kGroups - all * side.merged;  // all: slices and heads
  const auto slice = static_cast<std::int32_t>(all / side.heads);
  const auto head = static_cast<std::int32_t>(all) - slice * side.heads;
  const Chunk chunk = a.chunks[a.merged[side.first + n]];
  const auto inside = static_cast<std::int32_t>(group * kGroupRows);
  const std::int32_t first = chunk.tile * kRows + inside;
  const std::int32_t rows = min((kOfKeys ? a.Nk : a.Nq) - first, kGroupRows);
  const std::int64_t slot = std::int64_t{all} * side.slots + chunk.slot;
  const float* from = side.partial + (slot * kArrays * kRows + inside) * kOut;
  const std::int32_t slots = chunk.chunks - kInPlace<T>;
  const std::int32_t heads = kOfKeys ? a.Hkv : a.Hq, b = head / heads, h = head - b * heads;
  const std::int32_t column = slice * kOut;
  const auto offset = [&](const assay_stride& s) {
    return b * s.b + h * s.h + first * s.n + column;
  };
  if constexpr (kOfKeys) {
    merge_rows<T, kOut, kArrays>(static_cast<T*>(a.dk) + offset(a.sk), a.sk.n, from, slots, rows,
                                 a.D - column, a.scale, a.wide_k);
    merge_rows<T, kOut, kArrays>(static_cast<T*>(a.dv) + offset(a.sv), a.sv.n, from + kRows * kOut,
                                 slots, rows, a.Dv - column, 1, a.wide_v);
  } else {
    merge_rows<T, kOut, kArrays>(static_cast<T*>(a.dq) + offset(a.sq), a.sq.n, from, slots, rows,
                                 a.D - column, a.scale, a.wide_q);
  }
}

template <class T, int kOut>
__global__ void __launch_bounds__(kThreads, 2) attend_backward(const __grid_constant__ Backward a) {
  extern __shared__ __align__(16) unsigned char memory[];
  make_delta<T>(a);
  cooperative_groups::this_grid().sync();
  const std::uint32_t of_keys = a.slices * a.keys.heads * a.keys.pieces;
  const std::uint32_t pieces = of_keys + a.slices * a.queries.heads * a.queries.pieces;
  for (std::uint32_t at = blockIdx.x; at < pieces; at += gridDim.x) {
    if (at < of_keys) {
      pass<T, kOut, true>(a, a.keys, at, memory);
    } else {
      pass<T, kOut, false>(a, a.queries, at - of_keys, memory);
    }
    __syncthreads();
  }
  if (!a.cut) return;
  cooperative_groups::this_grid().sync();
  constexpr std::uint32_t kGroups = kRows / kGroupRows;
  const std::uint32_t merged_keys = a.slices * a.keys.heads * a.keys.merged * kGroups;
  const std::uint32_t merged =
      merged_keys + a.slices * a.queries.heads * a.queries.merged * kGroups;
  for (std::uint32_t at = blockIdx.x * kWarps + threadIdx.x / kWarp; at < merged;
       at += gridDim.x * kWarps) {
    if (at < merged_keys) {
      merge<T, kOut, true>(a, a.keys, at);
    } else {
      merge<T, kOut, false>(a, a.queries, at - merged_keys);
    }
  }
}

// --- the gradient of a bias ---

struct BiasGradient {
  float* out;
  std::int32_t B, Hq, Nq, Nk;           // of the bias
  std::int32_t query_tiles, key_tiles;  // of the bias
};

// A block has a tile of the bias, kRows queries and kBiasKeys keys, or one of each that serves all,
// and passes over the pairs that it serves, in order.
constexpr int kBiasKeys = 32;

template <class T>
__global__ void __launch_bounds__(kThreads)
    bias_gradient(const __grid_constant__ Backward a, const BiasGradient bias) {
  extern __shared__ __align__(16) unsigned char memory[];
  constexpr int kTiles = kBiasKeys / 8;
  const auto at = static_cast<std::int32_t>(blockIdx.x);
  const std::int32_t key_tile = at % bias.key_tiles;
  const std::int32_t query_tile = at / bias.key_tiles % bias.query_tiles;
  const std::int32_t head = at / bias.key_tiles / bias.query_tiles;
  const std::int32_t bias_h = head % bias.Hq, bias_b = head / bias.Hq;
  const bool all_queries = bias.Nq == 1, all_keys = bias.Nk == 1;

  const Rows<T> q{static_cast<const T*>(a.q), a.sq.n, a.D, a.score_bytes(), a.vector_q};
  const Rows<T> k{static_cast<const T*>(a.k), a.sk.n, a.D, a.score_bytes(), a.vector_k};
  const Rows<T> v{static_cast<const T*>(a.v), a.sv.n, a.Dv, a.value_bytes(), a.vector_v};
  const Rows<T> dout{static_cast<const T*>(a.dout), a.so.n, a.Dv, a.value_bytes(), a.vector_o};
  const Layout layout(a, kBiasKeys, 0);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const std::uint32_t own_rows = shared_address(memory) + warp * 16 * a.score_bytes();
  const std::uint32_t own_value_rows =
      shared_address(memory + layout.own_values) + warp * 16 * a.value_bytes();

  float sum[kTiles][4];
  clear(sum);
  const auto add_pairs = [&](const Sequence& seq, std::int32_t h, std::int32_t i, std::int32_t j) {
    const std::int32_t rows = min(seq.Nq - i, kRows), keys = min(seq.Nk - j, kBiasKeys);
    const Span span = other_side<false>(i, i + rows, seq.Nq, seq.Nk, a.causal, a.window);
    if (span.begin >= j + keys || span.end <= j) return;
    const std::int32_t kv = h / a.group;
    q.template stage_to<kRows>(memory, seq.query_at(a.sq, h, i), rows);
    dout.template stage_to<kRows>(memory + layout.own_values, seq.query_at(a.so, h, i), rows);
    k.template stage_to<kBiasKeys>(memory + layout.other_scores, seq.key_at(a.sk, kv, j), keys);
    v.template stage_to<kBiasKeys>(memory + layout.other_values, seq.key_at(a.sv, kv, j), keys);
    commit_copies();
    Sight sight;
    Query of_row[2] = {};
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const std::int32_t row = i + warp * 16 + r * 8 + lane / 4;
      Span sees{0, 0};
      if (row < seq.Nq) {
        sees = visible_keys(row, seq.Nq, seq.Nk, a.causal, a.window);
        of_row[r] = load_query(a, seq, h, row);
      }
      sight.from[r] = sees.begin - j;
      sight.to[r] = sees.end - j;
    }
    wait_copies<0>();
    __syncthreads();
    float s[kTiles][4], dp[kTiles][4];
    score_products<T>(s, own_rows, shared_address(memory + layout.other_scores), a.score_bytes(),
                      a.score_steps);
    score_products<T>(dp, own_value_rows, shared_address(memory + layout.other_values),
                      a.value_bytes(), a.value_steps);
    const Place place{seq.b, h, i, j, seq.Nk - seq.Nq};
    weigh<false, true, true>(s, dp, a, place, sight, of_row, nullptr);
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
#pragma unroll
      for (int c = 0; c < 4; ++c) sum[n][c] += dp[n][c];
    }
    __syncthreads();  // the tiles have been used
  };
  const auto first = [](std::int32_t size, std::int32_t own) { return size == 1 ? 0 : own; };
  const auto end = [](std::int32_t size, std::int32_t own, std::int32_t all) {
    return size == 1 ? all : own + 1;
  };
  for (std::int32_t b = first(bias.B, bias_b); b < end(bias.B, bias_b, a.items); ++b) {
    const Sequence seq(a, b);
    for (std::int32_t h = first(bias.Hq, bias_h); h < end(bias.Hq, bias_h, a.Hq); ++h) {
      for (std::int32_t i = all_queries ? 0 : query_tile * kRows;
           i < (all_queries ? a.Nq : query_tile * kRows + 1); i += kRows) {
        for (std::int32_t j = all_keys ? 0 : key_tile * kBiasKeys;
             j < (all_keys ? a.Nk : key_tile * kBiasKeys + 1); j += kBiasKeys) {
          add_pairs(seq, h, i, j);
        }
      }
    }
  }

  // Sums of the block, where one value serves all queries, all keys, or both.
  auto* sums = reinterpret_cast<float*>(memory);  // [kRows, kBiasKeys + 1]
  constexpr int kStride = kBiasKeys + 1;
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const int r = warp * 16 + c / 2 * 8 + lane / 4;
      sums[r * kStride + n * 8 + lane % 4 * 2 + c % 2] = sum[n][c];
    }
  }
  __syncthreads();
  const std::int32_t i = query_tile * kRows, j = key_tile * kBiasKeys;
  const std::int32_t rows = min(bias.Nq - i, kRows), columns = min(bias.Nk - j, kBiasKeys);
  for (int item = threadIdx.x; item < rows * kBiasKeys; item += kThreads) {
    const int r = item / kBiasKeys, c = item % kBiasKeys;
    if (c >= columns) continue;
    float x = 0;
    for (int rr = r; rr < (all_queries ? kRows : r + 1); ++rr) {
      for (int cc = c; cc < (all_keys ? kBiasKeys : c + 1); ++cc) x += sums[rr * kStride + cc];
    }
    bias.out[(std::int64_t{head} * bias.Nq + i + r) * bias.Nk + j + c] = x;
  }
}

// --- the host ---

constexpr std::int64_t kMostShared = 226 << 10;

// What chunks of at most `longest` steps come to, for a head.
struct Cut {
  std::int32_t longest;
  std::vector<std::int32_t> chunks;  // of each tile
  std::int64_t pieces, slots;
  std::int64_t partial;  // pieces whose results are, in slots or in the output
};

template <bool kOfKeys>
std::vector<std::int32_t> steps_of_tiles(const Backward& a, std::int32_t step) {
  std::vector<std::int32_t> counts;
  const std::int32_t own = kOfKeys ? a.Nk : a.Nq;
  for (std::int32_t first = 0; first < own; first += kRows) {
    const Span span =
        other_side<kOfKeys>(first, std::min(first + kRows, own), a.Nq, a.Nk, a.causal, a.window);
    counts.push_back(steps_of(span, step) * (kOfKeys ? a.group : 1));
  }
  return counts;
}

std::vector<Cut> cuts_of(const std::vector<std::int32_t>& counts, int in_place) {
  constexpr std::int32_t kMostChunks = 32;
  const std::int32_t most = counts.empty() ? 0 : *std::ranges::max_element(counts);
  std::vector<Cut> cuts;
  for (std::int32_t wanted = 1; wanted <= kMostChunks; ++wanted) {
    Cut cut{std::max(1, (most + wanted - 1) / wanted), {}, 0, 0, 0};
    if (!cuts.empty() && cuts.back().longest == cut.longest) continue;
    for (const std::int32_t n : counts) {
      cut.chunks.push_back(std::max(1, (n + cut.longest - 1) / cut.longest));
      cut.pieces += cut.chunks.back();
      if (cut.chunks.back() == 1) continue;
      cut.slots += cut.chunks.back() - in_place;
      cut.partial += cut.chunks.back();
    }
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

// Clocks of a step and of a piece beside, and bytes that they move, for a side.
struct Price {
  double step_clocks, piece_clocks, step_bytes, piece_bytes, slot_bytes;
};

// Writes the pieces of a side to the table, from entry `at` on. Tiles that see most come first.
std::int32_t tabulate(Backward& a, Side& side, const Cut& cut, bool of_keys, int in_place,
                      std::int32_t at) {
  side.first = at;
  side.pieces = static_cast<std::int32_t>(cut.pieces);
  side.slots = static_cast<std::int32_t>(cut.slots);
  side.merged = 0;
  std::int32_t slot = 0;
  for (std::int32_t n = 0; n < side.tiles; ++n) {
    const std::int32_t tile = of_keys ? n : side.tiles - 1 - n;
    const std::int32_t chunks = cut.chunks[static_cast<std::size_t>(tile)];
    if (chunks > 1) a.merged[side.first + side.merged++] = static_cast<std::uint16_t>(at);
    for (std::int32_t c = 0; c < chunks; ++c) {
      a.chunks[at++] = {static_cast<std::uint16_t>(tile), static_cast<std::uint16_t>(c),
                        static_cast<std::uint16_t>(chunks),
                        static_cast<std::uint16_t>(slot + std::max(0, c - in_place))};
    }
    if (chunks > 1) slot += chunks - in_place;
  }
  return at;
}

// The chunks that take least, by what memory, or tensor cores on the average or in the longest
// block, take on an H200. Partial results may take as much as dq in fp32, and 8 times dk or 2 MiB.
// Returns the clocks that they take.
double plan(Backward& a, std::int64_t resident, int step, int out, int element) {
  const auto whole = [](Side& side, std::int32_t heads, std::int32_t own) {
    side.heads = heads;
    side.tiles = side.pieces = static_cast<std::int32_t>(ceil_div(own, kRows));
    side.slots = 0;
  };
  whole(a.keys, a.items * a.Hkv, a.Nk);
  whole(a.queries, a.items * a.Hq, a.Nq);
  a.cut = false;
  if (a.cu_q != nullptr || a.kv_len != nullptr) return INFINITY;
  // Clocks of a multiprocessor: three products of tf32 or two of 16 bits, 3,784 flops of f16 each.
  const int in_place = element == 4 ? 1 : 0;
  const double rate = element == 4 ? 1892.0 / 3 : 3784.0, tile = 2.0 * kRows * step / rate;
  const double scores = a.score_steps * 64.0 / element, values = a.value_steps * 64.0 / element;
  const double twice = element == 4 ? 1 : 2, width = a.D + a.Dv;
  const auto price = [&](int arrays) {
    constexpr double kStepClocks = 250, kPieceClocks = 800;
    return Price{tile * (scores + values + arrays * twice * out) + kStepClocks, kPieceClocks,
                 step * width * element, kRows * width * element, arrays * kRows * out * 4.0};
  };
  const Price of_key = price(2), of_query = price(1);
  const std::vector<std::int32_t> key_counts = steps_of_tiles<true>(a, step);
  const std::vector<std::int32_t> query_counts = steps_of_tiles<false>(a, step);
  const double key_steps = std::accumulate(key_counts.begin(), key_counts.end(), 0.0);
  const double query_steps = std::accumulate(query_counts.begin(), query_counts.end(), 0.0);
  const double key_heads = static_cast<double>(a.keys.heads) * a.slices;
  const double query_heads = static_cast<double>(a.queries.heads) * a.slices;
  const double most_partial = 4.0 * a.queries.heads * a.Nq * a.D +
                              std::max(2.0 * (1 << 20), 32.0 * a.keys.heads * a.Nk * a.D);
  constexpr double kBytesAClock = 4.8e12 / 1.98e9;
  const double processors = multiprocessors();
  const std::vector<Cut> key_cuts = cuts_of(key_counts, in_place);
  const std::vector<Cut> query_cuts = cuts_of(query_counts, in_place);
  const Cut *best_keys = nullptr, *best_queries = nullptr;
  double best = INFINITY;
  for (const Cut& k : key_cuts) {
    for (const Cut& q : query_cuts) {
      const double pieces_k = static_cast<double>(k.pieces) * key_heads;
      const double pieces_q = static_cast<double>(q.pieces) * query_heads;
      const double stored = static_cast<double>(k.slots) * key_heads * of_key.slot_bytes +
                            static_cast<double>(q.slots) * query_heads * of_query.slot_bytes;
      const double partial = static_cast<double>(k.partial) * key_heads * of_key.slot_bytes +
                             static_cast<double>(q.partial) * query_heads * of_query.slot_bytes;
      const bool is_cut = k.partial + q.partial > 0;
      if (is_cut && (stored > most_partial || k.pieces + q.pieces > kMostPieces ||
                     pieces_k + pieces_q > static_cast<double>(resident)))
        continue;
      const double bytes = key_heads * key_steps * of_key.step_bytes +
                           query_heads * query_steps * of_query.step_bytes +
                           pieces_k * of_key.piece_bytes + pieces_q * of_query.piece_bytes +
                           2 * partial;
      const double average = (key_heads * key_steps * of_key.step_clocks +
                              query_heads * query_steps * of_query.step_clocks +
                              pieces_k * of_key.piece_clocks + pieces_q * of_query.piece_clocks) /
                             processors;
      const double longest =
          std::max(k.longest * of_key.step_clocks, q.longest * of_query.step_clocks) +
          of_key.piece_clocks;
      const double cost = std::max({bytes / kBytesAClock, average, longest});
      if (cost >= best) continue;
      best = cost;
      best_keys = &k;
      best_queries = &q;
    }
  }
  if (best_keys == nullptr || best_keys->partial + best_queries->partial == 0) return best;
  a.cut = true;
  const std::int32_t next = tabulate(a, a.keys, *best_keys, true, in_place, 0);
  tabulate(a, a.queries, *best_queries, false, in_place, next);
  return best;
}

// Blocks that can wait for each other; 0 where there is no room for one.
template <class Kernel>
std::int64_t resident_blocks(Kernel kernel, std::int64_t bytes) {
  int resident = 0;
  if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(bytes)) != cudaSuccess ||
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(
          &resident, kernel, kThreads, static_cast<std::size_t>(bytes)) != cudaSuccess) {
    return 0;
  }
  return std::int64_t{resident} * multiprocessors();
}

template <class T>
int launch_bias(assay_ctx* ctx, const Backward& a, const BiasGradient& bias) {
  const std::int64_t blocks = std::int64_t{bias.B} * bias.Hq * bias.query_tiles * bias.key_tiles;
  if (blocks == 0) return ASSAY_OK;
  const std::int64_t bytes =
      std::max<std::int64_t>(Layout(a, kBiasKeys, 0).end, 4 * kRows * (kBiasKeys + 1));
  if (resident_blocks(bias_gradient<T>, bytes) == 0) return ASSAY_EINTERNAL;
  bias_gradient<T><<<static_cast<unsigned>(blocks), kThreads, static_cast<std::size_t>(bytes),
                     stream_of(ctx)>>>(a, bias);
  return launch_status();
}

// A cut of the work for columns of kOut; `clocks`: what it takes, 0 where there is no room.
struct Launch {
  Backward a;
  std::int64_t bytes, resident;
  double clocks;
};

template <class T, int kOut>
Launch plan_launch(const Backward& a) {
  constexpr int kSize = sizeof(T);
  Launch l{a, 0, 0, INFINITY};
  l.a.slices =
      static_cast<std::int32_t>(std::max<std::int64_t>(1, ceil_div(std::max(a.D, a.Dv), kOut)));
  l.bytes = Layout(l.a, kStep<kOut>, kOut * kSize).end;
  if (l.bytes > kMostShared) return l;
  l.resident = resident_blocks(attend_backward<T, kOut>, l.bytes);
  l.clocks = plan(l.a, l.resident, kStep<kOut>, kOut, kSize);
  return l;
}

template <class T, int kOut>
int launch_backward(assay_ctx* ctx, const Launch& l, const BiasGradient& bias) {
  Backward a = l.a;
  const std::int64_t slot = std::int64_t{a.slices} * kRows * kOut;  // of all slices
  const std::int64_t of_keys = slot * 2 * a.keys.heads * a.keys.slots;
  const std::int64_t of_queries = slot * a.queries.heads * a.queries.slots;
  const std::int64_t floats = of_keys + of_queries + a.Hq * a.total_q;
  const Scratch scratch(ctx, static_cast<std::size_t>(floats) * 4);
  if (scratch.failed()) return ASSAY_ENOMEM;
  a.keys.partial = scratch.as<float>();
  a.queries.partial = a.keys.partial + of_keys;
  a.delta = a.queries.partial + of_queries;
  const std::int64_t pieces =
      std::int64_t{a.slices} * (std::int64_t{a.keys.heads} * a.keys.pieces +
                                std::int64_t{a.queries.heads} * a.queries.pieces);
  if (pieces > 0) {
    const dim3 grid(static_cast<unsigned>(std::min(pieces, l.resident))), block(kThreads);
    void* arguments[] = {&a};
    cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(attend_backward<T, kOut>), grid,
                                block, arguments, static_cast<std::size_t>(l.bytes),
                                stream_of(ctx));
  }
  if (bias.out != nullptr && launch_bias<T>(ctx, a, bias) != ASSAY_OK) return ASSAY_EINTERNAL;
  return launch_status();
}

template <class T>
int launch_backward(assay_ctx* ctx, Backward& a, const BiasGradient& bias) {
  constexpr std::int32_t kWidest = 2048;  // far above what shared memory has room for
  if (a.D > kWidest || a.Dv > kWidest) return ASSAY_ENOTSUP;
  if (std::int64_t{bias.B} * bias.Hq * bias.query_tiles * bias.key_tiles > INT_MAX)
    return ASSAY_ENOTSUP;
  const auto steps = [](std::int32_t width) {
    return std::max(1, static_cast<std::int32_t>(ceil_div(width * std::int64_t{sizeof(T)}, 64)));
  };
  a.score_steps = steps(a.D);
  a.value_steps = steps(a.Dv);
  const Launch narrow = plan_launch<T, 64>(a);
  if (std::max(a.D, a.Dv) > 64) {
    const Launch wide = plan_launch<T, 128>(a);
    if (wide.bytes > kMostShared) return ASSAY_ENOTSUP;
    if (wide.resident == 0) return ASSAY_EINTERNAL;
    if (narrow.resident == 0 || narrow.clocks >= wide.clocks)
      return launch_backward<T, 128>(ctx, wide, bias);
  }
  if (narrow.resident == 0) return ASSAY_EINTERNAL;
  return launch_backward<T, 64>(ctx, narrow, bias);
}

struct Operands {
  const void *dout, *q, *k, *v, *o;
  const float* lse;
  void *dq, *dk, *dv;
};

bool valid(const fa_params* p, std::int64_t queries, std::int64_t keys, const Operands& x) {
  if (!valid_sizes(p, queries, keys)) return false;
  const bool any_q = queries > 0 && p->Hq > 0, any_k = keys > 0 && p->Hkv > 0;
  const auto there = [](bool any, std::int64_t width, const void* in, const void* out) {
    return !any || width == 0 || (in != nullptr && out != nullptr);
  };
  return there(any_q, p->D, x.q, x.dq) && there(any_k, p->D, x.k, x.dk) &&
         there(any_k, p->Dv, x.v, x.dv) && there(any_q, p->Dv, x.dout, x.o) &&
         there(any_q, 1, x.lse, x.lse);
}
bool valid(const fa_params* p, const Operands& x) {
  return p != nullptr && valid(p, p->B * p->Nq, p->B * p->Nk, x);
}

// Extras are set by the caller.
int backward(assay_ctx* ctx, const fa_params& p, const Operands& x, Backward a,
             const BiasGradient& bias = {}) {
  if (p.dtype != ASSAY_F32 && p.dtype != ASSAY_BF16 && p.dtype != ASSAY_F16) return ASSAY_ENOTSUP;
  const std::int64_t group = p.Hkv == 0 ? 0 : p.Hq / p.Hkv;
  if (a.cu_q == nullptr) a.total_q = p.B * p.Nq;
  for (const std::int64_t n : {p.B, p.Hq, p.Nq, p.Nk, p.Nq * group, p.D, p.Dv, p.Hq * a.total_q,
                               8 * p.B * p.Hkv * std::max<std::int64_t>(ceil_div(p.Nk, kRows), 1),
                               8 * p.B * p.Hq * std::max<std::int64_t>(ceil_div(p.Nq, kRows), 1)}) {
    if (n > kMostPositions) return ASSAY_ENOTSUP;
  }
  a.dout = x.dout;
  a.q = x.q;
  a.k = x.k;
  a.v = x.v;
  a.o = x.o;
  a.lse = x.lse;
  a.dq = x.dq;
  a.dk = x.dk;
  a.dv = x.dv;
  set_shape(a, p, group);
  const std::int64_t element = p.dtype == ASSAY_F32 ? 4 : 2;
  a.vector_q = aligned(a.q, a.sq, p.D, element, 16);
  a.vector_k = aligned(a.k, a.sk, p.D, element, 16);
  a.vector_v = aligned(a.v, a.sv, p.Dv, element, 16);
  a.vector_o = aligned(a.dout, a.so, p.Dv, element, 16);
  a.wide_q = aligned(a.dq, a.sq, p.D, element, 4 * element);
  a.wide_k = aligned(a.dk, a.sk, p.D, element, 4 * element);
  a.wide_v = aligned(a.dv, a.sv, p.Dv, element, 4 * element);
  if (p.dtype == ASSAY_F32) return launch_backward<float>(ctx, a, bias);
  return p.dtype == ASSAY_BF16 ? launch_backward<__nv_bfloat16>(ctx, a, bias)
                               : launch_backward<__half>(ctx, a, bias);
}

}  // namespace

extern "C" {

int fa_backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q, const void* k,
                const void* v, const void* o, const float* lse, void* dq, void* dk, void* dv) {
  const Operands x{dout, q, k, v, o, lse, dq, dk, dv};
  if (!valid(p, x)) return ASSAY_EINVAL;
  return backward(ctx, *p, x, {});
}

// A sink is in lse already.
int fa_backward_extra(assay_ctx* ctx, const fa_params* p, const fa_extra* e, const float* dlse,
                      const void* dout, const void* q, const void* k, const void* v, const void* o,
                      const float* lse, void* dq, void* dk, void* dv) {
  const Operands x{dout, q, k, v, o, lse, dq, dk, dv};
  if (!valid(p, x)) return ASSAY_EINVAL;
  Backward a{};
  a.dlse = dlse;
  if (e != nullptr) {
    a.softcap = e->softcap;
    a.alibi = e->alibi;
    a.kv_len = e->kv_len;
  }
  return backward(ctx, *p, x, a);
}

int fa_backward_varlen(assay_ctx* ctx, const fa_params* p, const fa_varlen* lengths,
                       const void* dout, const void* q, const void* k, const void* v, const void* o,
                       const float* lse, void* dq, void* dk, void* dv) {
  const Operands x{dout, q, k, v, o, lse, dq, dk, dv};
  if (lengths == nullptr || lengths->cu_q == nullptr || lengths->cu_k == nullptr ||
      !valid(p, lengths->total_q, lengths->total_k, x)) {
    return ASSAY_EINVAL;
  }
  Backward a{};
  a.cu_q = lengths->cu_q;
  a.cu_k = lengths->cu_k;
  a.total_q = lengths->total_q;
  return backward(ctx, *p, x, a);
}

int fa_backward_bias(assay_ctx* ctx, const fa_params* p, const fa_bias* shape, const float* bias,
                     const void* dout, const void* q, const void* k, const void* v, const void* o,
                     const float* lse, void* dq, void* dk, void* dv, float* dbias) {
  const Operands x{dout, q, k, v, o, lse, dq, dk, dv};
  if (!valid(p, x) || !valid_bias(*p, shape, bias)) return ASSAY_EINVAL;
  Backward a{};
  set_bias(a, *shape, bias);
  BiasGradient gradient{};
  if (dbias != nullptr) {
    for (const std::int64_t n : {shape->B, shape->Hq, shape->Nq, shape->Nk}) {
      if (n > INT_MAX / 4) return ASSAY_ENOTSUP;
    }
    gradient = {dbias,
                static_cast<std::int32_t>(shape->B),
                static_cast<std::int32_t>(shape->Hq),
                static_cast<std::int32_t>(shape->Nq),
                static_cast<std::int32_t>(shape->Nk),
                static_cast<std::int32_t>(ceil_div(shape->Nq, kRows)),
                static_cast<std::int32_t>(ceil_div(shape->Nk, kBiasKeys))};
  }
  return backward(ctx, *p, x, a, gradient);
}

int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k, const void* v,
               void* o, float* lse) {
  if (!valid(p, q, k, v, o)) return ASSAY_EINVAL;
  return forward<false, 64>(ctx, *p, {q, k, v, o, lse}, {});
}

}  // extern "C"
