// Sample entrant of assay, not a model's answer: attention on tensor cores, in CUDA. A block has 64
// queries of a head, 16 a warp, and passes over the keys in tiles of 64 with an online softmax;
// cp.async brings the next keys while values are multiplied, and the next values while scores are.
// Everything is tf32: an fp32 number is the sum of two, and three products of them are as exact as
// fp32; bf16, f16 and fp8 are tf32 as they are, and only weights need two. Where heads and queries
// are too few for the device, several blocks share the keys of a tile of queries, and a second
// launch merges what they found. D and Dv up to 256; a window, packed sequences and all extras.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "abi.h"

namespace {

constexpr int kWarps = 4, kThreads = 32 * kWarps;
constexpr int kTile = 64;  // queries of a block, and keys of a step
constexpr int kEnoughBlocks = 256, kFewBlocks = 128, kMostShares = 8;
constexpr std::int64_t kMostPositions = std::int64_t{1} << 30;
constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147181f;

struct Task {
  const void *q, *k, *v;
  void* o;
  float* lse;  // or null
  assay_stride sq, sk, sv, so;
  std::int64_t total_q;  // of packed sequences
  int Hq, group, Nq, Nk, D, Dv;
  int window;  // 0: none
  int output;  // its dtype
  float scale, softcap;
  bool causal, quads_qk, quads_v, quads_o;  // rows are aligned to four elements
  const float *alibi, *sink, *bias, *scales;
  std::int64_t bias_b, bias_h, bias_i, bias_j;  // 0 where one value serves all
  const std::int64_t *kv_len, *cu_q, *cu_k;
  // Shares: at most `shares` blocks have a tile of queries, `steps` tiles of keys each.
  int query_tiles, shares, steps;
  float* partial;      // [head, tile of queries, share, kTile, width]
  float* partial_lse;  // [head, tile of queries, share, kTile]
  int width;           // Dv, rounded up to four

  __host__ __device__ bool changes_scores() const {
    return softcap > 0 || alibi != nullptr || bias != nullptr;
  }
};

struct Range {
  int begin, end;
};

// 64 queries of a head, and what they see.
struct Queries {
  int b, h, first, count;         // count: that exist
  int Nq, Nk;                     // of the item
  std::int64_t q_start, k_start;  // positions before a packed sequence
  Range keys;                     // that any of them sees
  int shares;

  __device__ Queries(const Task& a, std::int64_t head, int tile)
      : b(static_cast<int>(head / a.Hq)),
        h(static_cast<int>(head % a.Hq)),
        first(tile * kTile),
        Nq(a.Nq),
        Nk(a.Nk),
        q_start(0),
        k_start(0) {
    if (a.cu_q != nullptr) {
      q_start = a.cu_q[b];
      k_start = a.cu_k[b];
      Nq = static_cast<int>(a.cu_q[b + 1] - q_start);
      Nk = static_cast<int>(a.cu_k[b + 1] - k_start);
    }
    if (a.kv_len != nullptr) Nk = static_cast<int>(a.kv_len[b]);
    count = max(0, min(kTile, Nq - first));
    keys = {0, 0};
    if (count > 0) keys = {seen_by(a, first).begin, seen_by(a, first + count - 1).end};
    keys.begin -= keys.begin % kTile;
    const int tiles = keys.end > keys.begin ? (keys.end - keys.begin + kTile - 1) / kTile : 0;
    shares = max(1, (tiles + a.steps - 1) / a.steps);
  }

  __device__ Range seen_by(const Task& a, int i) const {
    const int self = i + Nk - Nq;
    return {a.window > 0 ? min(max(self - a.window + 1, 0), Nk) : 0,
            a.causal ? min(max(self + 1, 0), Nk) : Nk};
  }
  __device__ std::int64_t lse_at(const Task& a, int i) const {
    return a.cu_q != nullptr ? h * a.total_q + q_start + i
                             : (std::int64_t{b} * a.Hq + h) * a.Nq + i;
  }
  __device__ std::int64_t output_at(const Task& a, int i) const {
    return b * a.so.b + h * a.so.h + (q_start + i) * a.so.n;
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

__device__ void copy16(float* to, const float* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(exists ? 16 : 0)
               : "memory");
}
__device__ void end_of_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
__device__ void wait_for_all_but_last() { asm volatile("cp.async.wait_group 1;" ::: "memory"); }

// Rows in shared memory are kD + 4 floats apart. Then 16 bytes of each of eight lanes lie in
// different banks both where two rows are read, every other 16 bytes, and where four pairs of rows
// are.
template <int kD>
constexpr int kStride = (kD + 4) / 4;  // in float4

// `rows` rows of `columns` elements become kTile rows of kD floats; the rest is 0.
template <int kD, class T>
__device__ void load_tile(float4* tile, const T* data, std::int64_t step, int rows, int columns,
                          bool quads) {
  constexpr int kQuads = kD / 4, kAtOnce = kThreads / kQuads;
  const int column = threadIdx.x % kQuads * 4;
  int row = threadIdx.x / kQuads;
  const T* from = data + row * step + column;
  float* to = reinterpret_cast<float*>(tile + row * kStride<kD>) + column;
  for (; row < kTile; row += kAtOnce, from += kAtOnce * step, to += kAtOnce * kStride<kD> * 4) {
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

template <class T>
__device__ void store_row4(T* to, const float (&x)[4], int count, bool quads) {
  struct alignas(4 * sizeof(T)) Quad {
    T at[4];
  };
  if (quads && count >= 4) {
    *reinterpret_cast<Quad*>(to) = {T(x[0]), T(x[1]), T(x[2]), T(x[3])};
    return;
  }
  for (int e = 0; e < 4 && e < count; ++e) to[e] = T(x[e]);
}

// Elements `column` and on of a row of o.
__device__ void store_output(const Task& a, std::int64_t row, int column, const float (&x)[4]) {
  const int count = a.Dv - column;
  switch (a.output) {
    case ASSAY_F32: return store_row4(static_cast<float*>(a.o) + row + column, x, count, a.quads_o);
    case ASSAY_BF16:
      return store_row4(static_cast<__nv_bfloat16*>(a.o) + row + column, x, count, a.quads_o);
    default: return store_row4(static_cast<__half*>(a.o) + row + column, x, count, a.quads_o);
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

template <int kD>
struct Shared {
  float4 q[kTile * kStride<kD>], k[kTile * kStride<kD>], v[kTile * kStride<kD>];
  unsigned bad_values[2];  // bit j: value j of the tile is not finite
};

// 16 queries of a warp. Lane 4 g + t has queries g and g + 8 (h = 0, 1): keys 8 n + 2 t + e of
// scores are s[n][2 h + e], elements 32 c + 8 t + 4 e + i of outputs are out[4 c + i][2 h + e].
template <class T, int kD>
struct WarpQueries {
  static constexpr bool kExact = !std::is_same_v<T, float>;
  static constexpr int kKeyTiles = kTile / 8, kOutTiles = kD / 8;
  const int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4, first_row = threadIdx.x / 32 * 16;
  int query[2];
  Range sees[2];
  float s[kKeyTiles][4], out[kOutTiles][4] = {};
  float largest[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};  // sum: of the lane's keys
  bool spoilt[2] = {false, false};

  __device__ WarpQueries(const Task& a, const Queries& block) {
    for (int h = 0; h < 2; ++h) {
      query[h] = block.first + first_row + g + 8 * h;
      sees[h] = query[h] < block.Nq ? block.seen_by(a, query[h]) : Range{0, 0};
    }
  }

  // The order of columns is the same for q and k, and otherwise free: a lane takes four neighbours
  // for two steps of the tensor core. Its sums are truncated at each step, which shows in scores of
  // some hundreds, so they are short.
  __device__ void score(const float4* q, const float4* k) {
#pragma unroll
    for (auto& tile : s) {
#pragma unroll
      for (float& x : tile) x = 0;
    }
#pragma unroll(kD <= 128 ? kD / 16 : 4)
    for (int at = 0; at < kD / 16; ++at) {
      const int d = at / 2 * 8 + 2 * t + at % 2;
      const uint4 upper = bits(q + g * kStride<kD> + d),
                  lower = bits(q + (g + 8) * kStride<kD> + d);
      const Halves a0[4] = {half(upper.x), half(lower.x), half(upper.y), half(lower.y)},
                   a1[4] = {half(upper.z), half(lower.z), half(upper.w), half(lower.w)};
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
        const uint4 key = bits(k + (8 * n + g) * kStride<kD> + d);
        float part[4] = {};
        multiply<kExact, kExact>(part, a0, half(key.x), half(key.y));
        multiply<kExact, kExact>(part, a1, half(key.z), half(key.w));
#pragma unroll
        for (int i = 0; i < 4; ++i) s[n][i] += part[i];
      }
    }
  }

  // Products with the keys from j on become scores, in units of log 2.
  __device__ void finish_scores(const Task& a, const Queries& block, float scale, int j) {
    if (!a.changes_scores()) {
#pragma unroll
      for (auto& tile : s) {
#pragma unroll
        for (float& x : tile) x *= scale * kLog2E;
      }
      return;
    }
    const float slope = a.alibi != nullptr ? a.alibi[block.h] : 0;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int self = query[h] + block.Nk - block.Nq;
      const std::int64_t bias = block.b * a.bias_b + block.h * a.bias_h + query[h] * a.bias_i;
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int key = j + 8 * n + 2 * t + e;
          float x = s[n][2 * h + e] * scale;
          if (a.softcap > 0) x = a.softcap * tanhf(x / a.softcap);
          x -= slope * static_cast<float>(abs(self - key));
          if (a.bias != nullptr && key >= sees[h].begin && key < sees[h].end)
            x += a.bias[bias + key * a.bias_j];
          s[n][2 * h + e] = x * kLog2E;
        }
      }
    }
  }

  // What is not seen may be NaN: nothing that is added to it would hide it.
  __device__ void hide_unseen(int j) {
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
      for (int at = 0; at < 4; ++at) {
        const int key = j + 8 * n + 2 * t + at % 2;
        if (key < sees[at / 2].begin || key >= sees[at / 2].end) s[n][at] = -INFINITY;
      }
    }
  }

  // Scores become weights, relative to the largest so far.
  __device__ void weigh() {
    float base[2], shrink[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float top = largest[h];
#pragma unroll
      for (auto& tile : s) top = fmaxf(top, fmaxf(tile[2 * h], tile[2 * h + 1]));
      for (const int lanes : {1, 2}) top = fmaxf(top, __shfl_xor_sync(~0u, top, lanes));
      base[h] = top == -INFINITY ? 0 : top;  // nothing seen yet
      shrink[h] = exp2_approximate(largest[h] - base[h]);
      sum[h] *= shrink[h];
      largest[h] = top;
    }
#pragma unroll
    for (auto& tile : s) {
#pragma unroll
      for (int at = 0; at < 4; ++at) {
        tile[at] = exp2_approximate(tile[at] - base[at / 2]);
        sum[at / 2] += tile[at];
      }
    }
    // After a few tiles the largest score rarely changes.
    if (!__any_sync(~0u, shrink[0] != 1 || shrink[1] != 1)) return;
#pragma unroll
    for (auto& tile : out) {
#pragma unroll
      for (int at = 0; at < 4; ++at) tile[at] *= shrink[at / 2];
    }
  }

  // Weights lie as a left operand does if its columns t and t + 4 are keys 2 t and 2 t + 1.
  __device__ void add_values(const float4* v) {
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n) {
      const Halves p[4] = {Halves::of(s[n][0]), Halves::of(s[n][2]), Halves::of(s[n][1]),
                           Halves::of(s[n][3])};
      const float4* row = v + (8 * n + 2 * t) * kStride<kD> + g;
#pragma unroll
      for (int c = 0; c < kD / 32; ++c) {
        const uint4 even = bits(row + 8 * c), odd = bits(row + kStride<kD> + 8 * c);
        multiply<false, kExact>(out[4 * c], p, half(even.x), half(odd.x));
        multiply<false, kExact>(out[4 * c + 1], p, half(even.y), half(odd.y));
        multiply<false, kExact>(out[4 * c + 2], p, half(even.z), half(odd.z));
        multiply<false, kExact>(out[4 * c + 3], p, half(even.w), half(odd.w));
      }
    }
  }

  // A query that sees one of the `bad` values of the tile from j on is spoilt.
  __device__ void look_for(const unsigned (&bad)[2], int j) {
    if ((bad[0] | bad[1]) == 0) return;
    for (int h = 0; h < 2; ++h) {
      for (int n = max(sees[h].begin - j, 0); n < min(sees[h].end - j, kTile); ++n)
        spoilt[h] |= (bad[n / 32] >> n % 32 & 1) != 0;
    }
  }

  // To o and lse, or to the partial results of a share, from row `slot` on.
  __device__ void store(const Task& a, const Queries& block, std::int64_t slot, float scale) {
    const bool partial = block.shares > 1;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      for (const int lanes : {1, 2}) sum[h] += __shfl_xor_sync(~0u, sum[h], lanes);
      if (query[h] >= block.Nq) continue;
      // A sink is far above all scores, or far below: its weight comes last.
      const float sink = a.sink != nullptr && !partial ? a.sink[block.h] * kLog2E : -INFINITY,
                  top = fmaxf(largest[h], sink),
                  of_keys = largest[h] == -INFINITY ? 0 : exp2f(largest[h] - top),
                  total = sum[h] * of_keys + (sink == -INFINITY ? 0 : exp2f(sink - top));
      const float lse = total == 0 ? -INFINITY : fmaf(top, kLn2, logf(total));
      const float factor = spoilt[h] ? NAN : total == 0 ? 0 : scale * of_keys / total;
      const std::int64_t row = slot + first_row + g + 8 * h, at = block.output_at(a, query[h]);
      if (t == 0 && partial) a.partial_lse[row] = lse;
      if (t == 0 && !partial && a.lse != nullptr) a.lse[block.lse_at(a, query[h])] = lse;
#pragma unroll
      for (int c = 0; c < kD / 16; ++c) {
        const int column = c / 2 * 32 + t * 8 + c % 2 * 4;
        if (column >= a.Dv) continue;
        float x[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) x[i] = out[c / 2 * 4 + i][2 * h + c % 2] * factor;
        if (partial) {
          store_row4(a.partial + row * a.width + column, x, 4, true);
        } else {
          store_output(a, at, column, x);
        }
      }
    }
  }

 private:
  static __device__ Halves half(unsigned x) { return Halves::of<kExact>(x); }
};

// A NaN times a weight of 0 would spoil queries that do not see it: values that are not finite
// become 0, and are remembered.
template <int kD>
__device__ void take_out_bad_values(Shared<kD>& s) {
  for (int at = threadIdx.x; at < kTile * kD / 4; at += kThreads) {
    const int row = at / (kD / 4);
    float4& x = s.v[row * kStride<kD> + at % (kD / 4)];
    if (x.x * 0 + x.y * 0 + x.z * 0 + x.w * 0 == 0) continue;
    x = float4{};
    atomicOr(&s.bad_values[row / 32], 1u << row % 32);
  }
}

template <class T, int kD>
__global__ void __launch_bounds__(kThreads) attend(Task a) {
  extern __shared__ float4 memory[];
  auto& shared = *reinterpret_cast<Shared<kD>*>(memory);
  const int share = static_cast<int>(blockIdx.x % a.shares);
  const std::int64_t tile = blockIdx.x / a.shares;
  // Where keys are hidden from early queries, the longest come first.
  const Queries block(a, tile / a.query_tiles,
                      a.query_tiles - 1 - static_cast<int>(tile % a.query_tiles));
  if (block.count == 0 || share >= block.shares) return;
  const int begin = block.keys.begin + share * a.steps * kTile,
            end = min(block.keys.end, begin + a.steps * kTile);

  const T* q = static_cast<const T*>(a.q) + block.b * a.sq.b + block.h * a.sq.h;
  const T* k = static_cast<const T*>(a.k) + block.b * a.sk.b + block.h / a.group * a.sk.h;
  const T* v = static_cast<const T*>(a.v) + block.b * a.sv.b + block.h / a.group * a.sv.h;
  k += block.k_start * a.sk.n;
  v += block.k_start * a.sv.n;
  const auto load_keys = [&](int j) {
    if (j < end) {
      load_tile<kD>(shared.k, k + j * a.sk.n, a.sk.n, block.Nk - j, a.D, a.quads_qk);
    }
    end_of_copies();
  };
  const auto load_values = [&](int j) {
    load_tile<kD>(shared.v, v + j * a.sv.n, a.sv.n, block.Nk - j, a.Dv, a.quads_v);
    end_of_copies();
  };
  load_tile<kD>(shared.q, q + (block.q_start + block.first) * a.sq.n, a.sq.n, block.count, a.D,
                a.quads_qk);
  load_keys(begin);

  WarpQueries<T, kD> rows(a, block);
  Range warp_sees = {0, 0};
  if (rows.first_row < block.count) {
    const int first = block.first + rows.first_row,
              last = block.first + min(rows.first_row + 16, block.count) - 1;
    warp_sees = {block.seen_by(a, first).begin, block.seen_by(a, last).end};
  }
  const Range all_see = {block.seen_by(a, block.first + block.count - 1).begin,
                         block.seen_by(a, block.first).end};
  float scale = a.scale, output_scale = 1;
  if (a.scales != nullptr) {
    scale *= a.scales[0] * a.scales[1];
    output_scale = a.scales[2];
  }

  for (int j = begin; j < end; j += kTile) {
    const bool masked = j < all_see.begin || j + kTile > all_see.end;
    const bool works = j < warp_sees.end && j + kTile > warp_sees.begin;
    __syncthreads();  // nobody multiplies the last values any more
    if (threadIdx.x < 2) shared.bad_values[threadIdx.x] = 0;
    load_values(j);
    wait_for_all_but_last();
    __syncthreads();
    if (works) rows.score(shared.q + rows.first_row * kStride<kD>, shared.k);
    __syncthreads();
    load_keys(j + kTile);
    if (works) {
      rows.finish_scores(a, block, scale, j);
      if (masked) rows.hide_unseen(j);
      rows.weigh();
    }
    wait_for_all_but_last();
    __syncthreads();
    if (masked) {
      take_out_bad_values(shared);
      __syncthreads();
      rows.look_for(shared.bad_values, j);
    }
    if (works) rows.add_values(shared.v);
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
  rows.store(a, block, (tile * a.shares + share) * kTile, output_scale);
}

// A warp for each query whose keys several blocks have shared.
__global__ void __launch_bounds__(kThreads) merge(Task a, std::int64_t rows) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (at >= rows) return;
  const int row = static_cast<int>(at % kTile);
  const std::int64_t tile = at / kTile;
  const Queries queries(a, tile / a.query_tiles,
                        a.query_tiles - 1 - static_cast<int>(tile % a.query_tiles));
  if (row >= queries.count || queries.shares == 1) return;
  const std::int64_t slot = tile * a.shares * kTile + row;
  const float* lse = a.partial_lse + slot;
  const float sink = a.sink != nullptr ? a.sink[queries.h] : -INFINITY;
  float largest = sink;
  for (int c = 0; c < queries.shares; ++c) largest = fmaxf(largest, lse[c * kTile]);
  const float base = largest == -INFINITY ? 0.0f : largest;
  float sum = exp2f((sink - base) * kLog2E);
  for (int c = 0; c < queries.shares; ++c) sum += exp2f((lse[c * kTile] - base) * kLog2E);
  const int i = queries.first + row, lane = threadIdx.x % 32;
  if (lane == 0 && a.lse != nullptr)
    a.lse[queries.lse_at(a, i)] = sum == 0 ? -INFINITY : base + logf(sum);
  for (int column = lane * 4; column < a.Dv; column += 128) {
    float x[4] = {};
    for (int c = 0; c < queries.shares; ++c) {
      const float weight = sum == 0 ? 0 : exp2f((lse[c * kTile] - base) * kLog2E) / sum;
      const float4 part = load4(a.partial + (slot + c * kTile) * a.width + column);
      x[0] += weight * part.x;
      x[1] += weight * part.y;
      x[2] += weight * part.z;
      x[3] += weight * part.w;
    }
    store_output(a, queries.output_at(a, i), column, x);
  }
}

// --- host ---

std::int64_t divide_up(std::int64_t n, std::int64_t by) { return (n + by - 1) / by; }

template <class T, int kD>
int launch(assay_ctx* ctx, const Task& a, std::int64_t heads) {
  const auto stream = static_cast<cudaStream_t>(ctx->stream);
  if (cudaFuncSetAttribute(attend<T, kD>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           sizeof(Shared<kD>)) != cudaSuccess) {
    return ASSAY_EINTERNAL;
  }
  const std::int64_t tiles = heads * a.query_tiles;
  attend<T, kD>
      <<<static_cast<unsigned>(tiles * a.shares), kThreads, sizeof(Shared<kD>), stream>>>(a);
  if (a.shares > 1) {
    merge<<<static_cast<unsigned>(divide_up(tiles * kTile, kWarps)), kThreads, 0, stream>>>(
        a, tiles * kTile);
  }
  return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
}

template <class T>
int dispatch(assay_ctx* ctx, const Task& a, std::int64_t heads) {
  const int widest = std::max(a.D, a.Dv);
  return widest <= 32    ? launch<T, 32>(ctx, a, heads)
         : widest <= 64  ? launch<T, 64>(ctx, a, heads)
         : widest <= 128 ? launch<T, 128>(ctx, a, heads)
                         : launch<T, 256>(ctx, a, heads);
}

bool aligned(const void* data, const assay_stride& s, std::int64_t columns, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % (4 * bytes) == 0 &&
         (s.b | s.h | s.n | columns) % 4 == 0;
}

// Cuts the keys: enough blocks for the device, and no more scratch than they need.
void share_keys(Task& a, std::int64_t heads) {
  const std::int64_t blocks = heads * a.query_tiles, key_tiles = divide_up(a.Nk, kTile);
  const std::int64_t shares = std::min({key_tiles, divide_up(kEnoughBlocks, blocks),
                                        std::max<std::int64_t>(kMostShares, kFewBlocks / blocks)});
  a.steps = static_cast<int>(divide_up(key_tiles, std::max<std::int64_t>(shares, 1)));
  a.shares = static_cast<int>(key_tiles == 0 ? 1 : divide_up(key_tiles, a.steps));
  a.steps = std::max(a.steps, 1);
}

struct Arrays {
  const void *q, *k, *v;
  void* o;
  float* lse;
};

// `a` has extras only; `fp8`: of inputs.
int run(assay_ctx* ctx, const fa_params& p, const Arrays& arrays, Task a, bool fp8 = false) {
  if (p.B == 0 || p.Hq == 0 || p.Nq == 0) return ASSAY_OK;
  if (p.D > 256 || p.Dv > 256 || p.Nq > kMostPositions || p.Nk > kMostPositions ||
      p.dtype < ASSAY_F32 || p.dtype > ASSAY_F16 || (fp8 && p.dtype == ASSAY_F16)) {
    return ASSAY_ENOTSUP;
  }
  const std::size_t stored = p.dtype == ASSAY_F32 ? 4 : 2, bytes = fp8 ? 1 : stored;
  a.q = arrays.q;
  a.k = arrays.k;
  a.v = arrays.v;
  a.o = arrays.o;
  a.lse = arrays.lse;
  a.sq = p.sq;
  a.sk = p.sk;
  a.sv = p.sv;
  a.so = p.so;
  a.Hq = static_cast<int>(p.Hq);
  a.group = static_cast<int>(p.Hq / p.Hkv);
  a.Nq = static_cast<int>(p.Nq);
  a.Nk = static_cast<int>(p.Nk);
  a.D = static_cast<int>(p.D);
  a.Dv = static_cast<int>(p.Dv);
  a.window = static_cast<int>(std::clamp<std::int64_t>(p.window, 0, kMostPositions));
  a.output = p.dtype;
  a.scale = p.scale;
  a.causal = p.causal != 0;
  a.quads_qk = aligned(a.q, a.sq, p.D, bytes) && aligned(a.k, a.sk, p.D, bytes);
  a.quads_v = aligned(a.v, a.sv, p.Dv, bytes);
  a.quads_o = aligned(a.o, a.so, p.Dv, stored);
  a.width = static_cast<int>(divide_up(p.Dv, 4) * 4);
  a.query_tiles = static_cast<int>(divide_up(p.Nq, kTile));
  const std::int64_t heads = p.B * p.Hq;
  share_keys(a, heads);
  if (a.shares > 1) {
    const std::int64_t rows = heads * a.query_tiles * a.shares * kTile;
    a.partial = static_cast<float*>(
        ctx->alloc(ctx, static_cast<std::size_t>(rows * (a.width + 1)) * sizeof(float), 16, 1));
    if (a.partial == nullptr) return ASSAY_ENOMEM;
    a.partial_lse = a.partial + rows * a.width;
  }
  const int status = fp8                     ? dispatch<__nv_fp8_e4m3>(ctx, a, heads)
                     : p.dtype == ASSAY_F32  ? dispatch<float>(ctx, a, heads)
                     : p.dtype == ASSAY_BF16 ? dispatch<__nv_bfloat16>(ctx, a, heads)
                                             : dispatch<__half>(ctx, a, heads);
  if (a.partial != nullptr) ctx->free(ctx, a.partial);
  return status;
}

// `queries` and `keys`: positions of all items.
bool valid(const fa_params* p, std::int64_t queries, std::int64_t keys, const Arrays& arrays) {
  if (p == nullptr) return false;
  for (const std::int64_t n : {p->B, p->Hq, p->Hkv, p->Nq, p->Nk, p->D, p->Dv, queries, keys}) {
    if (n < 0) return false;
  }
  if (p->Hkv == 0 ? p->Hq != 0 : p->Hq % p->Hkv != 0) return false;
  const auto there = [](const void* data, std::int64_t rows, std::int64_t columns) {
    return data != nullptr || rows == 0 || columns == 0;
  };
  return there(arrays.q, p->Hq * queries, p->D) && there(arrays.k, p->Hkv * keys, p->D) &&
         there(arrays.v, p->Hkv * keys, p->Dv) && there(arrays.o, p->Hq * queries, p->Dv);
}
bool valid(const fa_params* p, const Arrays& arrays) {
  return p != nullptr && p->B >= 0 && p->Nq >= 0 && p->Nk >= 0 &&
         valid(p, p->B * p->Nq, p->B * p->Nk, arrays);
}

}  // namespace

extern "C" int fa_forward_extra(assay_ctx* ctx, const fa_params* p, const fa_extra* e,
                                const void* q, const void* k, const void* v, void* o, float* lse) {
  const Arrays arrays{q, k, v, o, lse};
  if (!valid(p, arrays)) return ASSAY_EINVAL;
  Task a{};
  if (e != nullptr) {
    a.softcap = e->softcap;
    a.alibi = e->alibi;
    a.sink = e->sink;
    a.kv_len = e->kv_len;
  }
  return run(ctx, *p, arrays, a);
}

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  return fa_forward_extra(ctx, p, nullptr, q, k, v, o, lse);
}

extern "C" int fa_forward_varlen(assay_ctx* ctx, const fa_params* p, const fa_varlen* lengths,
                                 const void* q, const void* k, const void* v, void* o, float* lse) {
  const Arrays arrays{q, k, v, o, lse};
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

extern "C" int fa_forward_bias(assay_ctx* ctx, const fa_params* p, const fa_bias* of,
                               const float* bias, const void* q, const void* k, const void* v,
                               void* o, float* lse) {
  const Arrays arrays{q, k, v, o, lse};
  if (of == nullptr || !valid(p, arrays)) return ASSAY_EINVAL;
  const auto fits = [](std::int64_t n, std::int64_t full) { return n == full || n == 1; };
  if (!fits(of->B, p->B) || !fits(of->Hq, p->Hq) || !fits(of->Nq, p->Nq) || !fits(of->Nk, p->Nk))
    return ASSAY_EINVAL;
  if (bias == nullptr && of->B * of->Hq * of->Nq * of->Nk != 0) return ASSAY_EINVAL;
  Task a{};
  a.bias = bias;
  a.bias_j = of->Nk == 1 ? 0 : 1;
  a.bias_i = of->Nq == 1 ? 0 : of->Nk;
  a.bias_h = of->Hq == 1 ? 0 : of->Nk * of->Nq;
  a.bias_b = of->B == 1 ? 0 : of->Nk * of->Nq * of->Hq;
  return run(ctx, *p, arrays, a);
}

extern "C" int fa_forward_fp8(assay_ctx* ctx, const fa_params* p, const float* scales,
                              const std::uint8_t* q, const std::uint8_t* k, const std::uint8_t* v,
                              void* o, float* lse) {
  const Arrays arrays{q, k, v, o, lse};
  if (scales == nullptr || !valid(p, arrays)) return ASSAY_EINVAL;
  Task a{};
  a.scales = scales;
  return run(ctx, *p, arrays, a, true);
}
