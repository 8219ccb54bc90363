// Sample entrant of assay, not a model's answer: gradients of attention on tensor cores, in CUDA,
// in three launches. The first makes delta. In the second a block has 64 keys, for dk and dv, or 64
// queries, for dq, and passes over what they see: queries look at keys as keys look at queries, so
// that one function does both. Scores and dP are computed twice that way, but no sum needs atomics,
// and two runs agree; but for a bias that several pairs share, whose gradient is added up in any
// order. Where tiles are too few for the device, several blocks share what a tile sees, and the
// third launch adds up what they found. Everything is tf32: an fp32 number is the sum of two, and
// three products of them are as exact as fp32; bf16 and f16 are tf32 as they are. D and Dv up to
// 256; a window, packed sequences, a bias and all extras; no forward pass.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "abi.h"

namespace {

constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr int kTile = 64;  // keys or queries of a block
template <int kD>
constexpr int kStep = kD <= 64 ? 64 : 32;  // of the other side
template <int kD>
constexpr int kSlice = kD <= 128 ? kD : 128;  // columns of gradients that a block computes
constexpr std::int64_t kMostBlocks = 264;     // two for each multiprocessor
constexpr int kMostTiles = 128;               // of a side that blocks share
constexpr std::int64_t kMostPositions = std::int64_t{1} << 30;
constexpr float kLog2E = 1.44269504f;

// Keys or queries. At most `shares` blocks have a tile, `steps` steps of the other side each. Where
// they are several, their sums have slots of kTile rows, as many as that tile needs.
struct Side {
  int tiles, shares, steps;
  std::int64_t heads;     // B times those of an item
  std::int64_t blocks;    // of a head, without those that have nothing to do
  std::int64_t slots;     // of a head
  float *first, *second;  // sums: of dk or dq, and of dv; [head, slot, kTile, width]
  std::uint16_t first_slot[kMostTiles];

  __device__ std::int64_t slot(std::int64_t head, int tile) const {
    return head * slots + (slots > 0 ? first_slot[tile] : 0);
  }
};

struct Task {
  const void *dout, *q, *k, *v, *o;
  const float* lse;
  void *dq, *dk, *dv;
  assay_stride sq, sk, sv, so;
  std::int64_t B, total_q;  // total_q: of packed sequences
  int Hq, Hkv, group, Nq, Nk, D, Dv;
  int window;  // 0: none
  float scale, softcap;
  bool causal, quads_d, quads_dv;  // rows of D or Dv elements are aligned to four
  const float *alibi, *dlse, *bias;
  float* dbias;                                 // or null
  std::int64_t bias_b, bias_h, bias_i, bias_j;  // 0 where one value serves all
  std::int64_t biases;                          // values of bias
  const std::int64_t *kv_len, *cu_q, *cu_k;
  float* delta;  // as lse
  Side keys, queries;
  int slices, width_d, width_dv;  // widths: of sums, multiples of four

  __host__ __device__ bool changes_scores() const {
    return softcap > 0 || alibi != nullptr || bias != nullptr;
  }
};

struct Range {
  int begin, end;
};

__host__ __device__ int clamp(int n, int most) { return n < 0 ? 0 : n < most ? n : most; }

// The keys that query n sees, or the queries that see key n.
template <bool kKeys>
__host__ __device__ Range sight(int n, int Nq, int Nk, bool causal, int window) {
  if (!kKeys) {
    const int self = n + Nk - Nq;
    return {window > 0 ? clamp(self - window + 1, Nk) : 0, causal ? clamp(self + 1, Nk) : Nk};
  }
  if (n >= Nk) return {0, 0};
  const int self = n - (Nk - Nq);
  return {causal ? clamp(self, Nq) : 0, window > 0 ? clamp(self + window, Nq) : Nq};
}

// What the tile from `first` up to `end` sees of the other side.
template <bool kKeys>
__host__ __device__ Range sight_of_tile(int first, int end, int Nq, int Nk, bool causal,
                                        int window) {
  if (kKeys && end > Nk) end = Nk;
  if (first >= end) return {0, 0};
  const Range all{sight<kKeys>(first, Nq, Nk, causal, window).begin,
                  sight<kKeys>(end - 1, Nq, Nk, causal, window).end};
  return all.begin < all.end ? all : Range{0, 0};
}

__host__ __device__ int steps_over(const Range& other, int step) {
  return (other.end - other.begin + step - 1) / step;
}

// An item of the batch or a packed sequence.
struct Item {
  int b, Nq, Nk, stored_keys;     // stored_keys: with those beyond kv_len
  std::int64_t q_start, k_start;  // positions before it

  __device__ Item(const Task& a, int item)
      : b(item), Nq(a.Nq), Nk(a.Nk), stored_keys(a.Nk), q_start(0), k_start(0) {
    if (a.cu_q != nullptr) {
      q_start = a.cu_q[b];
      k_start = a.cu_k[b];
      Nq = static_cast<int>(a.cu_q[b + 1] - q_start);
      stored_keys = Nk = static_cast<int>(a.cu_k[b + 1] - k_start);
    }
    if (a.kv_len != nullptr) Nk = static_cast<int>(a.kv_len[b]);
  }

  __device__ std::int64_t query_at(const assay_stride& s, int h, int i) const {
    return b * s.b + h * s.h + (q_start + i) * s.n;
  }
  __device__ std::int64_t key_at(const assay_stride& s, int h, int j) const {
    return b * s.b + h * s.h + (k_start + j) * s.n;
  }
  __device__ std::int64_t lse_at(const Task& a, int h, int i) const {
    return a.cu_q != nullptr ? h * a.total_q + q_start + i
                             : (std::int64_t{b} * a.Hq + h) * a.Nq + i;
  }
};

// A tile of a side, and the steps over what it sees: for keys, those of each head of the group.
template <bool kKeys>
struct Tile {
  Item item;
  int head, number, first, count;  // of the side
  Range other;
  int steps, per_head, shares;
  std::int64_t slot;  // for the sums of its shares

  __device__ Tile(const Task& a, const Side& side, std::int64_t at, int step)
      : item(a, static_cast<int>(at / side.tiles / (kKeys ? a.Hkv : a.Hq))),
        head(static_cast<int>(at / side.tiles % (kKeys ? a.Hkv : a.Hq))) {
    const int tile = static_cast<int>(at % side.tiles);
    // Under causality early keys and late queries have most to do: they come first.
    number = kKeys ? tile : side.tiles - 1 - tile;
    first = number * kTile;
    count = max(0, min(kTile, (kKeys ? item.stored_keys : item.Nq) - first));
    other = sight_of_tile<kKeys>(first, first + count, item.Nq, item.Nk, a.causal, a.window);
    per_head = steps_over(other, step);
    steps = per_head * (kKeys ? a.group : 1);
    shares = max(1, (steps + side.steps - 1) / side.steps);
    slot = side.slot(at / side.tiles, number);
  }

  __device__ Range sight_of(const Task& a, int n) const {
    return sight<kKeys>(n, item.Nq, item.Nk, a.causal, a.window);
  }
};

// --- data ---

template <class T>
__device__ float4 load4(const T* x) {
  struct alignas(4 * sizeof(T)) Quad {
    T at[4];
  };
  const Quad quad = *reinterpret_cast<const Quad*>(x);
  return make_float4(static_cast<float>(quad.at[0]), static_cast<float>(quad.at[1]),
                     static_cast<float>(quad.at[2]), static_cast<float>(quad.at[3]));
}

// Up to four elements of a row, of which `count` are left.
template <class T>
__device__ void store4(T* to, const float4& x, int count, bool quads) {
  struct alignas(4 * sizeof(T)) Quad {
    T at[4];
  };
  if (quads) {
    *reinterpret_cast<Quad*>(to) = {T(x.x), T(x.y), T(x.z), T(x.w)};
    return;
  }
  to[0] = T(x.x);
  if (count > 1) to[1] = T(x.y);
  if (count > 2) to[2] = T(x.z);
  if (count > 3) to[3] = T(x.w);
}

__device__ void copy16(float* to, const float* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(exists ? 16 : 0)
               : "memory");
}
__device__ void end_of_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kLeft>
__device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
}

// Rows in shared memory are kD + 4 floats apart. Then 16 bytes of each of eight lanes lie in
// different banks both where two rows are read, every other 16 bytes, and where four pairs of rows
// are.
template <int kD>
constexpr int kStride = (kD + 4) / 4;  // in float4

// `rows` rows of `columns` elements become kRows rows of kD floats; the rest is 0.
template <int kRows, int kD, class T>
__device__ void load_rows(float4* tile, const T* data, std::int64_t step, int rows, int columns,
                          bool quads) {
  constexpr int kQuads = kD / 4, kAtOnce = kThreads / kQuads;
  const int column = threadIdx.x % kQuads * 4;
  int row = threadIdx.x / kQuads;
  const T* from = data + row * step + column;
  float* to = reinterpret_cast<float*>(tile + row * kStride<kD>) + column;
  for (; row < kRows; row += kAtOnce, from += kAtOnce * step, to += kAtOnce * kStride<kD> * 4) {
    const bool exists = row < rows && column < columns;
    if (!quads) {
      for (int e = 0; e < 4; ++e)
        to[e] = exists && column + e < columns ? static_cast<float>(from[e]) : 0.0f;
    } else if constexpr (std::is_same_v<T, float>) {
      copy16(to, exists ? from : data, exists);
    } else {
      *reinterpret_cast<float4*>(to) = exists ? load4(from) : float4{};
    }
  }
}

// --- tensor cores ---

__device__ float exp2_approximate(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// x = high + low, both tf32. Bits of floats stay bits: each change of a register's type would be an
// instruction.
struct Halves {
  unsigned high, low;
  template <bool kExact>
  static __device__ Halves of(unsigned x) {
    if (kExact) return {x, 0};
    Halves h;
    asm("cvt.rna.tf32.f32 %0, %2; sub.f32 %1, %2, %0;" : "=&r"(h.high), "=r"(h.low) : "r"(x));
    return h;
  }
  static __device__ Halves of(float x) {
    Halves h;
    asm("cvt.rna.tf32.f32 %0, %2; sub.f32 %1, %2, %0;" : "=&r"(h.high), "=r"(h.low) : "f"(x));
    return h;
  }
};

__device__ uint4 bits(const float4* x) { return *reinterpret_cast<const uint4*>(x); }

__device__ void mma(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0,
                    unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// c += a b with a of 16 x 8 and b of 8 x 8, to the precision of fp32 where they are fp32.
template <bool kExactA, bool kExactB>
__device__ void multiply(float (&c)[4], const Halves (&a)[4], const Halves& b0, const Halves& b1) {
  if (!kExactA) mma(c, a[0].low, a[1].low, a[2].low, a[3].low, b0.high, b1.high);
  if (!kExactB) mma(c, a[0].high, a[1].high, a[2].high, a[3].high, b0.low, b1.low);
  mma(c, a[0].high, a[1].high, a[2].high, a[3].high, b0.high, b1.high);
}

template <int kTiles>
__device__ void clear(float (&c)[kTiles][4]) {
#pragma unroll
  for (auto& tile : c) {
#pragma unroll
    for (float& x : tile) x = 0;
  }
}

// Lane 4 g + t has rows g and g + 8 (h = 0, 1) of a product: columns 8 n + 2 t + e of products of
// rows are c[n][2 h + e], columns 32 n + 8 t + 4 e + i of sums of rows are c[4 n + i][2 h + e].

// c = the warp's 16 rows times rows of the other side. The order of columns is the same for both
// and otherwise free: a lane takes four neighbours for two steps of the tensor core. Its sums are
// truncated at each step, which shows in scores of some hundreds, so they are short.
template <class T, int kD, int kTiles>
__device__ void multiply_rows(float (&c)[kTiles][4], const float4* a, const float4* b) {
  constexpr bool kExact = !std::is_same_v<T, float>;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const auto half = [](unsigned x) { return Halves::of<kExact>(x); };
  clear(c);
#pragma unroll(kD <= 128 ? kD / 16 : 4)
  for (int at = 0; at < kD / 16; ++at) {
    const int d = at / 2 * 8 + 2 * t + at % 2;
    const uint4 upper = bits(a + g * kStride<kD> + d), lower = bits(a + (g + 8) * kStride<kD> + d);
    const Halves a0[4] = {half(upper.x), half(lower.x), half(upper.y), half(lower.y)},
                 a1[4] = {half(upper.z), half(lower.z), half(upper.w), half(lower.w)};
#pragma unroll
    for (int n = 0; n < kTiles; ++n) {
      const uint4 x = bits(b + (8 * n + g) * kStride<kD> + d);
      float part[4] = {};
      multiply<kExact, kExact>(part, a0, half(x.x), half(x.y));
      multiply<kExact, kExact>(part, a1, half(x.z), half(x.w));
#pragma unroll
      for (int i = 0; i < 4; ++i) c[n][i] += part[i];
    }
  }
}

// c += weights times rows of the other side. Weights lie as a left operand does if its columns t
// and t + 4 are rows 2 t and 2 t + 1.
template <class T, int kD, int kTiles, int kOutTiles>
__device__ void add_rows(float (&c)[kOutTiles][4], const float (&weights)[kTiles][4],
                         const float4* b) {
  constexpr bool kExact = !std::is_same_v<T, float>;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
  const auto half = [](unsigned x) { return Halves::of<kExact>(x); };
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
    const float(&w)[4] = weights[n];
    const Halves a[4] = {Halves::of(w[0]), Halves::of(w[2]), Halves::of(w[1]), Halves::of(w[3])};
    const float4* row = b + (8 * n + 2 * t) * kStride<kD> + g;
#pragma unroll
    for (int m = 0; m < kOutTiles / 4; ++m) {
      const uint4 even = bits(row + 8 * m), odd = bits(row + kStride<kD> + 8 * m);
      multiply<false, kExact>(c[4 * m], a, half(even.x), half(odd.x));
      multiply<false, kExact>(c[4 * m + 1], a, half(even.y), half(odd.y));
      multiply<false, kExact>(c[4 * m + 2], a, half(even.z), half(odd.z));
      multiply<false, kExact>(c[4 * m + 3], a, half(even.w), half(odd.w));
    }
  }
}

// --- 1: delta ---

// delta = dout . o, and what flows into lse is taken off: 16 lanes for each query.
template <class T>
__global__ void __launch_bounds__(kThreads) make_delta(Task a, std::int64_t rows) {
  const std::int64_t row = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) / 16;
  const int lane = threadIdx.x % 16;
  const std::int64_t positions = a.cu_q != nullptr ? a.total_q : a.Nq;
  float sum = 0;
  if (row < rows) {
    const std::int64_t head = row / positions, i = row % positions;
    const std::int64_t at = head / a.Hq * a.so.b + head % a.Hq * a.so.h + i * a.so.n;
    const T *dout = static_cast<const T*>(a.dout) + at, *o = static_cast<const T*>(a.o) + at;
    for (int d = lane; d < a.Dv; d += 16)
      sum += static_cast<float>(dout[d]) * static_cast<float>(o[d]);
  }
  for (int offset = 8; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
  if (row < rows && lane == 0) a.delta[row] = a.dlse != nullptr ? sum - a.dlse[row] : sum;
}

// --- 2: gradients of tiles ---

template <int kD>
struct Shared {
  float4 x[kTile * kStride<kD>], y[kTile * kStride<kD>];  // k and v, or q and dout
  float4 other_x[kStep<kD> * kStride<kD>], other_y[kStep<kD> * kStride<kD>];
  float4 lse_delta[kStep<kD> / 2];  // of pairs of queries, where they are the other side
  unsigned bad[2];                  // bit n: row n of other_x or other_y is not finite
};

// Of a query: lse in units of log 2, and delta.
__device__ float2 load_lse_delta(const Task& a, const Item& item, int h, int i) {
  if (i >= item.Nq) return {0, 0};
  const std::int64_t at = item.lse_at(a, h, i);
  return {a.lse[at] * kLog2E, a.delta[at]};
}

// A lane's two rows of a tile, and what of the other side they see.
template <bool kKeys>
struct Lane {
  int own[2];
  Range sees[2];
  float2 lse_delta[2] = {};  // where rows are queries

  __device__ Lane(const Task& a, const Tile<kKeys>& tile) {
    for (int h = 0; h < 2; ++h) {
      own[h] = tile.first + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + 8 * h;
      sees[h] = {0, 0};
      if (own[h] < tile.first + tile.count) sees[h] = tile.sight_of(a, own[h]);
      if (!kKeys) lse_delta[h] = load_lse_delta(a, tile.item, tile.head, own[h]);
    }
  }
  __device__ bool sees_there(int h, int there) const {
    return there >= sees[h].begin && there < sees[h].end;
  }
};

// A product becomes a score in units of log 2. `slope`: of it with the product times scale.
struct Score {
  float value, slope;
};
__device__ Score change_score(const Task& a, const Item& item, int h, int i, int j, bool visible,
                              float product) {
  Score score{product * a.scale, 1};
  if (a.softcap > 0) {
    const float part = score.value / a.softcap, across = 1 / coshf(part);
    score = {a.softcap * tanhf(part), across * across};
  }
  if (a.alibi != nullptr)
    score.value -= a.alibi[h] * static_cast<float>(abs(i + item.Nk - item.Nq - j));
  if (a.bias != nullptr && visible)
    score.value += a.bias[item.b * a.bias_b + h * a.bias_h + i * a.bias_i + j * a.bias_j];
  score.value *= kLog2E;
  return score;
}

// Products of rows with the other side from `first` on become weights, and those of dout and v
// their gradients. `h`: the query head. kChanged: scores are more than scaled products.
template <bool kKeys, bool kChanged, int kTiles>
__device__ void weigh(const Task& a, const Item& item, const Lane<kKeys>& lane, int h, int first,
                      const float4* lse_deltas, float (&weights)[kTiles][4],
                      float (&gradients)[kTiles][4]) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
    float4 pair = {};
    if (kKeys) pair = lse_deltas[4 * n + t];
#pragma unroll
    for (int at = 0; at < 4; ++at) {
      const float lse = !kKeys        ? lane.lse_delta[at / 2].x
                        : at % 2 == 0 ? pair.x
                                      : pair.z,
                  delta = !kKeys        ? lane.lse_delta[at / 2].y
                          : at % 2 == 0 ? pair.y
                                        : pair.w;
      float &w = weights[n][at], &dw = gradients[n][at];
      if constexpr (kChanged) {
        const int own = lane.own[at / 2], there = first + 8 * n + 2 * t + at % 2;
        const Score score = change_score(a, item, h, kKeys ? there : own, kKeys ? own : there,
                                         lane.sees_there(at / 2, there), w);
        w = exp2_approximate(score.value - lse);
        dw = w * (dw - delta) * score.slope;
      } else {
        w = exp2_approximate(fmaf(w, a.scale * kLog2E, -lse));
        dw = w * (dw - delta);
      }
    }
  }
}

// What is not seen may be NaN: 0 times it would not hide it.
template <bool kKeys, int kTiles>
__device__ void clear_unseen(const Lane<kKeys>& lane, int first, float (&weights)[kTiles][4],
                             float (&gradients)[kTiles][4]) {
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
#pragma unroll
    for (int at = 0; at < 4; ++at) {
      if (!lane.sees_there(at / 2, first + 8 * n + 2 * (threadIdx.x % 4) + at % 2))
        weights[n][at] = gradients[n][at] = 0;
    }
  }
}

// Gradients of scores are those of the bias, which several pairs may share.
template <int kTiles>
__device__ void add_to_dbias(const Task& a, const Item& item, const Lane<false>& lane, int h,
                             int first, const float (&gradients)[kTiles][4]) {
  float* dbias = a.dbias + item.b * a.bias_b + h * a.bias_h;
#pragma unroll
  for (int n = 0; n < kTiles; ++n) {
#pragma unroll
    for (int at = 0; at < 4; ++at) {
      const int j = first + 8 * n + 2 * (threadIdx.x % 4) + at % 2;
      if (lane.sees_there(at / 2, j))
        atomicAdd(&dbias[lane.own[at / 2] * a.bias_i + j * a.bias_j], gradients[n][at]);
    }
  }
}

__device__ bool finite(const float4& x) { return x.x * 0 + x.y * 0 + x.z * 0 + x.w * 0 == 0; }

// 0 times NaN would spoil rows that do not see it. So rows of the other side with values that are
// not finite are looked for, and those values become 0.
template <int kD>
__device__ void find_bad_rows(Shared<kD>& s) {
  for (int at = threadIdx.x; at < kStep<kD> * kD / 4; at += kThreads) {
    const int row = at / (kD / 4), where = row * kStride<kD> + at % (kD / 4);
    if (!finite(s.other_x[where]) || !finite(s.other_y[where]))
      atomicOr(&s.bad[row / 32], 1u << row % 32);
  }
}

template <int kD>
__device__ void clear_bad_rows(Shared<kD>& s) {
  for (int at = threadIdx.x; at < kStep<kD> * kD / 4; at += kThreads) {
    const int row = at / (kD / 4), where = row * kStride<kD> + at % (kD / 4);
    if ((s.bad[row / 32] >> row % 32 & 1) == 0) continue;
    for (float4* quad : {&s.other_x[where], &s.other_y[where]}) {
      for (float* x : {&quad->x, &quad->y, &quad->z, &quad->w}) {
        if (!isfinite(*x)) *x = 0;
      }
    }
  }
}

// What weights of rows of y would have spoilt: sums of the rows that see them, column by column.
// Rows of x need nothing, since the weights of those that see them are NaN.
template <int kD, int kOutTiles>
__device__ void spoil(float (&c)[kOutTiles][4], const Shared<kD>& s, int slice,
                      const Lane<true>& lane, int first) {
  const int t = threadIdx.x % 4;
  for (int row = 0; row < kStep<kD>; ++row) {
    if ((s.bad[row / 32] >> row % 32 & 1) == 0) continue;
    const float* y = reinterpret_cast<const float*>(s.other_y + row * kStride<kD>) + slice + 8 * t;
#pragma unroll
    for (int n = 0; n < kOutTiles; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (lane.sees_there(i / 2, first + row) && !isfinite(y[n / 4 * 32 + i % 2 * 4 + n % 4]))
          c[n][i] = NAN;
      }
    }
  }
}

// The rows of a tile: to the gradient, or to the sums of the share.
template <class T, int kOutTiles>
__device__ void store_rows(const float (&c)[kOutTiles][4], float scale, T* out, std::int64_t step,
                           float* sums, int width, int count, int first_column, int columns,
                           bool quads) {
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    const int row = threadIdx.x / 32 * 16 + g + 8 * h;
    if (row >= count) continue;
#pragma unroll
    for (int n = 0; n < kOutTiles / 2; ++n) {
      const int column = first_column + n / 2 * 32 + 8 * t + n % 2 * 4;
      if (column >= columns) continue;
      const int at = n / 2 * 4, e = 2 * h + n % 2;
      const float4 x = make_float4(c[at][e] * scale, c[at + 1][e] * scale, c[at + 2][e] * scale,
                                   c[at + 3][e] * scale);
      if (sums != nullptr) {
        *reinterpret_cast<float4*>(sums + std::int64_t{row} * width + column) = x;
      } else {
        store4(out + row * step + column, x, columns - column, quads);
      }
    }
  }
}

// Brings the rows that a tile meets, step by step.
template <class T, int kD, bool kKeys>
struct Loader {
  const Task& a;
  const Tile<kKeys>& tile;
  Shared<kD>& s;

  __device__ int first(int step) const {
    return tile.other.begin + step % tile.per_head * kStep<kD>;
  }
  __device__ int query_head(int step) const {
    return kKeys ? tile.head * a.group + step / tile.per_head : tile.head;
  }
  __device__ std::int64_t own_at(const assay_stride& stride) const {
    return kKeys ? tile.item.key_at(stride, tile.head, tile.first)
                 : tile.item.query_at(stride, tile.head, tile.first);
  }

  // k and v of keys, q and dout of queries.
  __device__ void own() const {
    const assay_stride &sx = kKeys ? a.sk : a.sq, &sy = kKeys ? a.sv : a.so;
    const T *x = static_cast<const T*>(kKeys ? a.k : a.q),
            *y = static_cast<const T*>(kKeys ? a.v : a.dout);
    const int rows = kKeys ? min(tile.count, tile.item.Nk - tile.first) : tile.count;
    load_rows<kTile, kD>(s.x, x + own_at(sx), sx.n, rows, a.D, a.quads_d);
    load_rows<kTile, kD>(s.y, y + own_at(sy), sy.n, rows, a.Dv, a.quads_dv);
  }

  // q or k of the other side, with lse and delta where it is queries.
  __device__ void other_x(int step) const {
    const assay_stride& stride = kKeys ? a.sq : a.sk;
    load(s.other_x, static_cast<const T*>(kKeys ? a.q : a.k), stride, step, a.D, a.quads_d);
    if (kKeys && threadIdx.x < kStep<kD>) {
      const int i = first(step) + static_cast<int>(threadIdx.x);
      reinterpret_cast<float2*>(s.lse_delta)[threadIdx.x] =
          load_lse_delta(a, tile.item, query_head(step), i);
    }
  }

  // dout or v of the other side.
  __device__ void other_y(int step) const {
    const assay_stride& stride = kKeys ? a.so : a.sv;
    load(s.other_y, static_cast<const T*>(kKeys ? a.dout : a.v), stride, step, a.Dv, a.quads_dv);
    if (threadIdx.x < 2) s.bad[threadIdx.x] = 0;
  }

 private:
  __device__ void load(float4* to, const T* from, const assay_stride& stride, int step, int columns,
                       bool quads) const {
    const Item& item = tile.item;
    const int at = first(step), h = query_head(step);
    from += kKeys ? item.query_at(stride, h, at) : item.key_at(stride, h / a.group, at);
    load_rows<kStep<kD>, kD>(to, from, stride.n, (kKeys ? item.Nq : item.Nk) - at, columns, quads);
  }
};

template <class T, int kD, bool kKeys>
__device__ void differentiate(const Task& a, const Side& side, Shared<kD>& s, std::int64_t block) {
  constexpr int kTiles = kStep<kD> / 8, kOutTiles = kSlice<kD> / 8;
  const int slice = static_cast<int>(block % a.slices) * kSlice<kD>;
  block /= a.slices;
  const int share = static_cast<int>(block % side.shares);
  const Tile<kKeys> tile(a, side, block / side.shares, kStep<kD>);
  const Item& item = tile.item;
  if (tile.count == 0 || share >= tile.shares) return;
  const int begin = share * side.steps, end = min(tile.steps, begin + side.steps);

  const Loader<T, kD, kKeys> load{a, tile, s};
  load.own();
  if (begin < end) load.other_x(begin);
  end_of_copies();
  if (begin < end) load.other_y(begin);
  end_of_copies();

  const int warp_row = threadIdx.x / 32 * 16;
  const float4 *x = s.x + warp_row * kStride<kD>, *y = s.y + warp_row * kStride<kD>;
  const Lane<kKeys> lane(a, tile);
  const Range upper = tile.sight_of(a, tile.first),
              lower = tile.sight_of(a, tile.first + tile.count - 1);
  const Range all_see = {max(upper.begin, lower.begin), min(upper.end, lower.end)};
  const bool works = warp_row < tile.count;

  float dx[kOutTiles][4] = {}, dy[kKeys ? kOutTiles : 1][4] = {};
  for (int step = begin; step < end; ++step) {
    const int first = load.first(step), h = load.query_head(step);
    const bool masked = first < all_see.begin || first + kStep<kD> > all_see.end;
    float weights[kTiles][4], gradients[kTiles][4];
    wait_for_copies<1>();
    __syncthreads();
    if (works) multiply_rows<T, kD>(weights, x, s.other_x);
    wait_for_copies<0>();
    __syncthreads();
    if (works) {
      multiply_rows<T, kD>(gradients, y, s.other_y);
      if (a.changes_scores()) {
        weigh<kKeys, true>(a, item, lane, h, first, s.lse_delta, weights, gradients);
      } else {
        weigh<kKeys, false>(a, item, lane, h, first, s.lse_delta, weights, gradients);
      }
      if (masked) clear_unseen(lane, first, weights, gradients);
      if constexpr (!kKeys) {
        if (a.dbias != nullptr && slice == 0) add_to_dbias(a, item, lane, h, first, gradients);
      }
    }
    if (masked) {
      __syncthreads();
      find_bad_rows(s);
      __syncthreads();
      if ((s.bad[0] | s.bad[1]) != 0) {
        if constexpr (kKeys) spoil<kD>(dy, s, slice, lane, first);
        __syncthreads();
        clear_bad_rows(s);
        __syncthreads();
      }
    }
    if (works) add_rows<T, kD>(dx, gradients, s.other_x + slice / 4);
    __syncthreads();
    if (step + 1 < end) load.other_x(step + 1);
    end_of_copies();
    if constexpr (kKeys) {
      if (works) add_rows<T, kD>(dy, weights, s.other_y + slice / 4);
      __syncthreads();
    }
    if (step + 1 < end) load.other_y(step + 1);
    end_of_copies();
  }
  wait_for_copies<0>();

  const std::int64_t slot = (tile.slot + share) * kTile;
  const bool shared = tile.shares > 1;
  const assay_stride& sx = kKeys ? a.sk : a.sq;
  store_rows(dx, a.scale, static_cast<T*>(kKeys ? a.dk : a.dq) + load.own_at(sx), sx.n,
             shared ? side.first + slot * a.width_d : nullptr, a.width_d, tile.count, slice, a.D,
             a.quads_d);
  if constexpr (kKeys) {
    store_rows(dy, 1, static_cast<T*>(a.dv) + load.own_at(a.sv), a.sv.n,
               shared ? side.second + slot * a.width_dv : nullptr, a.width_dv, tile.count, slice,
               a.Dv, a.quads_dv);
  }
}

template <class T, int kD>
__global__ void __launch_bounds__(kThreads) make_gradients(Task a, std::int64_t key_blocks) {
  extern __shared__ float4 memory[];
  auto& shared = *reinterpret_cast<Shared<kD>*>(memory);
  const std::int64_t block = blockIdx.x;
  if (block < key_blocks) {
    differentiate<T, kD, true>(a, a.keys, shared, block);
  } else {
    differentiate<T, kD, false>(a, a.queries, shared, block - key_blocks);
  }
}

// --- 3: sums of shares ---

template <class T>
__device__ void add_shares(const float* sums, int shares, int width, T* out, int columns,
                           bool quads) {
  for (int column = threadIdx.x % 32 * 4; column < columns; column += 128) {
    float4 sum = {};
    for (int c = 0; c < shares; ++c) {
      const float4 x = load4(sums + std::int64_t{c} * kTile * width + column);
      sum.x += x.x;
      sum.y += x.y;
      sum.z += x.z;
      sum.w += x.w;
    }
    store4(out + column, sum, columns - column, quads);
  }
}

// A warp for a row that several blocks have shared.
template <class T, bool kKeys>
__device__ void add_row(const Task& a, const Side& side, std::int64_t at, int step) {
  const int row = static_cast<int>(at % kTile);
  const std::int64_t number = at / kTile;
  const Tile<kKeys> tile(a, side, number, step);
  if (row >= tile.count || tile.shares == 1) return;
  const std::int64_t slot = tile.slot * kTile + row;
  const int n = tile.first + row;
  if (kKeys) {
    add_shares(side.first + slot * a.width_d, tile.shares, a.width_d,
               static_cast<T*>(a.dk) + tile.item.key_at(a.sk, tile.head, n), a.D, a.quads_d);
    add_shares(side.second + slot * a.width_dv, tile.shares, a.width_dv,
               static_cast<T*>(a.dv) + tile.item.key_at(a.sv, tile.head, n), a.Dv, a.quads_dv);
  } else {
    add_shares(side.first + slot * a.width_d, tile.shares, a.width_d,
               static_cast<T*>(a.dq) + tile.item.query_at(a.sq, tile.head, n), a.D, a.quads_d);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    add_sums(Task a, int step, std::int64_t key_rows, std::int64_t query_rows) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (at < key_rows) {
    add_row<T, true>(a, a.keys, at, step);
  } else if (at < key_rows + query_rows) {
    add_row<T, false>(a, a.queries, at - key_rows, step);
  }
}

// --- host ---

std::int64_t divide_up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

// Device memory of the context, for the length of a call.
class Scratch {
 public:
  Scratch(assay_ctx* ctx, std::int64_t floats)
      : ctx_(ctx),
        data_(static_cast<float*>(
            ctx->alloc(ctx, static_cast<std::size_t>(floats) * sizeof(float), 256, 1))) {}
  ~Scratch() {
    if (data_ != nullptr) ctx_->free(ctx_, data_);
  }
  Scratch(const Scratch&) = delete;
  float* data() const { return data_; }

 private:
  assay_ctx* ctx_;
  float* data_;
};

std::int64_t sums_of(const Side& side, int width) {
  return side.heads * side.slots * kTile * width;
}

// Cuts what each tile sees into pieces of `most` steps. Where items differ, they are taken for the
// longest that may be.
template <bool kKeys>
void cut(const Task& a, Side& side, int step, std::int64_t most) {
  side.steps = static_cast<int>(most);
  side.shares = 1;
  side.blocks = side.slots = 0;
  const bool alike = a.cu_q == nullptr && a.kv_len == nullptr;
  const int longest = kKeys ? a.Nq : a.Nk;
  for (int tile = 0; tile < side.tiles; ++tile) {
    const int end = std::min((tile + 1) * kTile, kKeys ? a.Nk : a.Nq);
    const Range other =
        alike ? sight_of_tile<kKeys>(tile * kTile, end, a.Nq, a.Nk, a.causal, a.window)
              : Range{0, longest};
    const std::int64_t steps = std::int64_t{steps_over(other, step)} * (kKeys ? a.group : 1);
    const std::int64_t shares = std::max<std::int64_t>(1, divide_up(steps, most));
    if (tile < kMostTiles) side.first_slot[tile] = static_cast<std::uint16_t>(side.slots);
    if (shares > 1) side.slots += shares;
    side.shares = std::max(side.shares, static_cast<int>(shares));
    side.blocks += shares;
  }
}

// Cuts the work: whoever takes longest is cut smaller, as long as the device has room for the
// blocks, and the sums take no more than 4.5 times dk and dv, or 2.25 MiB.
void share_work(Task& a, int step) {
  const auto longest = [](std::int64_t steps) { return std::max<std::int64_t>(1, steps); };
  cut<true>(a, a.keys, step, longest(a.group * divide_up(a.Nq, step)));
  cut<false>(a, a.queries, step, longest(divide_up(a.Nk, step)));
  const std::int64_t gradients = a.keys.heads * a.Nk * (a.width_d + a.width_dv),
                     most = std::max<std::int64_t>(589824, gradients * 9 / 2);
  for (;;) {
    Task smaller = a;
    // Keys have four products a step, queries three.
    const bool keys = 4 * a.keys.steps > 3 * a.queries.steps;
    const Side& side = keys ? a.keys : a.queries;
    if (side.steps == 1 || side.tiles > kMostTiles) return;
    if (keys) {
      cut<true>(a, smaller.keys, step, side.steps - 1);
    } else {
      cut<false>(a, smaller.queries, step, side.steps - 1);
    }
    const std::int64_t blocks =
        smaller.keys.heads * smaller.keys.blocks + smaller.queries.heads * smaller.queries.blocks;
    if (blocks * a.slices > kMostBlocks ||
        sums_of(smaller.keys, a.width_d + a.width_dv) + sums_of(smaller.queries, a.width_d) > most)
      return;
    a = smaller;
  }
}

int clear_dbias(assay_ctx* ctx, const Task& a) {
  if (a.dbias == nullptr || a.biases == 0) return ASSAY_OK;
  const cudaError_t error =
      cudaMemsetAsync(a.dbias, 0, static_cast<std::size_t>(a.biases) * sizeof(float),
                      static_cast<cudaStream_t>(ctx->stream));
  return error == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}

template <class T, int kD>
int launch(assay_ctx* ctx, Task a) {
  const auto stream = static_cast<cudaStream_t>(ctx->stream);
  a.slices = kD / kSlice<kD>;
  share_work(a, kStep<kD>);
  const std::int64_t of_dk = sums_of(a.keys, a.width_d), of_dv = sums_of(a.keys, a.width_dv),
                     of_dq = sums_of(a.queries, a.width_d);
  const std::int64_t rows = a.cu_q != nullptr ? a.Hq * a.total_q : a.B * a.Hq * a.Nq;
  const Scratch scratch(ctx, std::max<std::int64_t>(of_dk + of_dv + of_dq + rows, 1));
  if (scratch.data() == nullptr) return ASSAY_ENOMEM;
  a.keys.first = scratch.data();
  a.keys.second = a.keys.first + of_dk;
  a.queries.first = a.keys.second + of_dv;
  a.delta = a.queries.first + of_dq;
  if (cudaFuncSetAttribute(make_gradients<T, kD>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           sizeof(Shared<kD>)) != cudaSuccess ||
      clear_dbias(ctx, a) != ASSAY_OK) {
    return ASSAY_EINTERNAL;
  }
  if (rows > 0) {
    make_delta<T>
        <<<static_cast<unsigned>(divide_up(rows, kThreads / 16)), kThreads, 0, stream>>>(a, rows);
  }
  const auto blocks_of = [&](const Side& side) {
    return side.heads * side.tiles * side.shares * a.slices;
  };
  const std::int64_t key_blocks = blocks_of(a.keys), query_blocks = blocks_of(a.queries);
  if (key_blocks + query_blocks == 0) return ASSAY_OK;
  make_gradients<T, kD>
      <<<static_cast<unsigned>(key_blocks + query_blocks), kThreads, sizeof(Shared<kD>), stream>>>(
          a, key_blocks);
  const auto shared_rows = [](const Side& side) {
    return side.shares > 1 ? side.heads * side.tiles * kTile : 0;
  };
  const std::int64_t key_rows = shared_rows(a.keys), query_rows = shared_rows(a.queries);
  if (key_rows + query_rows > 0) {
    add_sums<T>
        <<<static_cast<unsigned>(divide_up(key_rows + query_rows, kWarps)), kThreads, 0, stream>>>(
            a, kStep<kD>, key_rows, query_rows);
  }
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}

template <class T>
int dispatch(assay_ctx* ctx, const Task& a) {
  const int widest = std::max(a.D, a.Dv);
  return widest <= 32    ? launch<T, 32>(ctx, a)
         : widest <= 64  ? launch<T, 64>(ctx, a)
         : widest <= 128 ? launch<T, 128>(ctx, a)
                         : launch<T, 256>(ctx, a);
}

struct Arrays {
  const void *dout, *q, *k, *v, *o;
  const float* lse;
  void *dq, *dk, *dv;
};

// `a` has extras only.
int run(assay_ctx* ctx, const fa_params& p, const Arrays& arrays, Task a) {
  if (p.D > 256 || p.Dv > 256 || p.Nq > kMostPositions || p.Nk > kMostPositions ||
      p.dtype < ASSAY_F32 || p.dtype > ASSAY_F16) {
    return ASSAY_ENOTSUP;
  }
  a.dout = arrays.dout;
  a.q = arrays.q;
  a.k = arrays.k;
  a.v = arrays.v;
  a.o = arrays.o;
  a.lse = arrays.lse;
  a.dq = arrays.dq;
  a.dk = arrays.dk;
  a.dv = arrays.dv;
  a.sq = p.sq;
  a.sk = p.sk;
  a.sv = p.sv;
  a.so = p.so;
  a.B = p.B;
  a.Hq = static_cast<int>(p.Hq);
  a.Hkv = static_cast<int>(p.Hkv);
  a.group = p.Hkv == 0 ? 0 : static_cast<int>(p.Hq / p.Hkv);
  a.Nq = static_cast<int>(p.Nq);
  a.Nk = static_cast<int>(p.Nk);
  a.D = static_cast<int>(p.D);
  a.Dv = static_cast<int>(p.Dv);
  a.window = static_cast<int>(std::clamp<std::int64_t>(p.window, 0, kMostPositions));
  a.scale = p.scale;
  a.causal = p.causal != 0;
  const std::size_t quad = p.dtype == ASSAY_F32 ? 16 : 8;
  const auto aligned = [&](std::initializer_list<const void*> all,
                           std::initializer_list<assay_stride> strides, std::int64_t columns) {
    return columns % 4 == 0 &&
           std::all_of(
               all.begin(), all.end(),
               [&](const void* x) { return reinterpret_cast<std::uintptr_t>(x) % quad == 0; }) &&
           std::all_of(strides.begin(), strides.end(),
                       [](const assay_stride& s) { return (s.b | s.h | s.n) % 4 == 0; });
  };
  a.quads_d = aligned({a.q, a.k, a.dq, a.dk}, {a.sq, a.sk}, p.D);
  a.quads_dv = aligned({a.dout, a.v, a.dv}, {a.so, a.sv}, p.Dv);
  a.width_d = static_cast<int>(divide_up(p.D, 4) * 4);
  a.width_dv = static_cast<int>(divide_up(p.Dv, 4) * 4);
  a.keys.heads = p.B * p.Hkv;
  a.keys.tiles = static_cast<int>(divide_up(p.Nk, kTile));
  a.queries.heads = p.B * p.Hq;
  a.queries.tiles = static_cast<int>(divide_up(p.Nq, kTile));
  if (a.keys.heads * a.keys.tiles + a.queries.heads * a.queries.tiles == 0)
    return clear_dbias(ctx, a);
  return p.dtype == ASSAY_F32    ? dispatch<float>(ctx, a)
         : p.dtype == ASSAY_BF16 ? dispatch<__nv_bfloat16>(ctx, a)
                                 : dispatch<__half>(ctx, a);
}

// `queries` and `keys`: positions of all items.
bool valid(const fa_params* p, std::int64_t queries, std::int64_t keys, const Arrays& arrays) {
  if (p == nullptr) return false;
  for (const std::int64_t n : {p->B, p->Hq, p->Hkv, p->Nq, p->Nk, p->D, p->Dv, queries, keys}) {
    if (n < 0) return false;
  }
  if (p->Hkv == 0 ? p->Hq != 0 : p->Hq % p->Hkv != 0) return false;
  const auto there = [](std::initializer_list<const void*> all, std::int64_t elements) {
    return elements == 0 ||
           std::none_of(all.begin(), all.end(), [](const void* x) { return x == nullptr; });
  };
  const std::int64_t query_rows = p->Hq * queries, key_rows = p->Hkv * keys;
  return there({arrays.lse}, query_rows) && there({arrays.q, arrays.dq}, query_rows * p->D) &&
         there({arrays.dout, arrays.o}, query_rows * p->Dv) &&
         there({arrays.k, arrays.dk}, key_rows * p->D) &&
         there({arrays.v, arrays.dv}, key_rows * p->Dv);
}
bool valid(const fa_params* p, const Arrays& arrays) {
  return p != nullptr && p->B >= 0 && p->Nq >= 0 && p->Nk >= 0 &&
         valid(p, p->B * p->Nq, p->B * p->Nk, arrays);
}

}  // namespace

extern "C" int fa_backward_extra(assay_ctx* ctx, const fa_params* p, const fa_extra* e,
                                 const float* dlse, const void* dout, const void* q, const void* k,
                                 const void* v, const void* o, const float* lse, void* dq, void* dk,
                                 void* dv) {
  const Arrays arrays{dout, q, k, v, o, lse, dq, dk, dv};
  if (!valid(p, arrays)) return ASSAY_EINVAL;
  Task a{};
  a.dlse = dlse;
  if (e != nullptr) {
    a.softcap = e->softcap;
    a.alibi = e->alibi;
    a.kv_len = e->kv_len;  // a sink needs nothing: it is in lse, and has no value
  }
  return run(ctx, *p, arrays, a);
}

extern "C" int fa_backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q,
                           const void* k, const void* v, const void* o, const float* lse, void* dq,
                           void* dk, void* dv) {
  return fa_backward_extra(ctx, p, nullptr, nullptr, dout, q, k, v, o, lse, dq, dk, dv);
}

extern "C" int fa_backward_varlen(assay_ctx* ctx, const fa_params* p, const fa_varlen* lengths,
                                  const void* dout, const void* q, const void* k, const void* v,
                                  const void* o, const float* lse, void* dq, void* dk, void* dv) {
  const Arrays arrays{dout, q, k, v, o, lse, dq, dk, dv};
  if (lengths == nullptr || lengths->cu_q == nullptr || lengths->cu_k == nullptr ||
      !valid(p, lengths->total_q, lengths->total_k, arrays)) {
    return ASSAY_EINVAL;
  }
  Task a{};
  a.cu_q = lengths->cu_q;
  a.cu_k = lengths->cu_k;
  a.total_q = lengths->total_q;
  return run(ctx, *p, arrays, a);
}

extern "C" int fa_backward_bias(assay_ctx* ctx, const fa_params* p, const fa_bias* of,
                                const float* bias, const void* dout, const void* q, const void* k,
                                const void* v, const void* o, const float* lse, void* dq, void* dk,
                                void* dv, float* dbias) {
  const Arrays arrays{dout, q, k, v, o, lse, dq, dk, dv};
  if (of == nullptr || !valid(p, arrays)) return ASSAY_EINVAL;
  const auto fits = [](std::int64_t n, std::int64_t full) { return n == full || n == 1; };
  if (!fits(of->B, p->B) || !fits(of->Hq, p->Hq) || !fits(of->Nq, p->Nq) || !fits(of->Nk, p->Nk))
    return ASSAY_EINVAL;
  Task a{};
  a.biases = of->B * of->Hq * of->Nq * of->Nk;
  if (bias == nullptr && a.biases != 0) return ASSAY_EINVAL;
  a.bias = bias;
  a.dbias = dbias;
  a.bias_j = of->Nk == 1 ? 0 : 1;
  a.bias_i = of->Nq == 1 ? 0 : of->Nk;
  a.bias_h = of->Hq == 1 ? 0 : of->Nk * of->Nq;
  a.bias_b = of->B == 1 ? 0 : of->Nk * of->Nq * of->Hq;
  return run(ctx, *p, arrays, a);
}
