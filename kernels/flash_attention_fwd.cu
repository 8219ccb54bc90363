// Softmax attention, forward, in one launch.
//
// The shape. One head of N 2,048 queries and keys, D 64, causal, fp32: 2.1 MB of q, k, v and o,
// 0.4 us of an H200's 4.8 TB/s; 2.1 M visible pairs of 4 D flops each, 0.54 Gflop, 8 us of its 67
// Tflop/s of fp32. Arithmetic is the limit, and tensor cores move it: fp32 as three products of
// tf32 takes 3.3 us of 495 Tflop/s; bf16 and f16, with weights in two parts, take 0.8 us of 990.
// What a launch costs is 3 us.
//
// Tiles. A block of four warps has 64 rows, 16 a warp, and passes over tiles of 64 keys with the
// online softmax: scores, weights relative to the running maximum, sums of values, all in
// registers in the layout of mma's accumulators, which is that of its multiplicand too. So nothing
// of size Nq x Nk exists, not even in shared memory. A row is a query of a query head; rows of a
// key head are its queries' query heads one by one, so grouped heads share the keys that are read.
// Tiles that no row sees are not read, warps whose rows see nothing of a tile rest, and only warps
// with a row that sees a part of it compare positions.
//
// Bytes. A tile of keys and values is 64 * 8 D bytes of fp32 for 64 rows: causal, each row reads
// half of all keys, so the 2,048 rows of above read 32 * 33 / 2 tiles of 32 KiB, 17.3 MB, 3.6 us.
// 128 rows a block would halve it, and leave 16 tiles of rows to 132 multiprocessors.
//
// Chunks. 32 tiles of rows are too few as well, and the last one sees 32 tiles of keys. So blocks
// share a tile's keys in chunks, whose results are merged after a barrier of the grid, in the same
// launch: a second one costs 3 us. A chunk costs 8 (Dv + 1) bytes a row, written and read;
// plan_chunks takes the number at which memory or the busiest multiprocessor takes least. A tile
// that needs one chunk only is finished by its block. Partial results are normalised, with the
// logarithm of their weights. The order of sums is fixed: two runs agree.
//
// Stages. Keys and values have a stage each: cp.async brings the next keys while values are
// multiplied, and the next values while scores are. That is one barrier more a tile than with two
// stages of each, and half the memory: 52 KB where D is 64, 101 KB where it is 128, so that the
// two blocks that the registers leave room for (some 200 a thread) share a multiprocessor.
//
// Precision. fp32 is hi + lo, both tf32 (11 bits each): hi hi' + hi lo' + lo hi' errs by some
// 2^-22, what fp32 does anyway. Weights of bf16 and f16 are two of that type for the product with
// v, hi and lo: rounded to one they would err as much as the result that is stored. fp8 becomes
// f16, which holds all its values. lse and maxima are of log 2.
//
// NaN. A masked score is selected away. But a masked value is multiplied, by a weight of 0, which
// leaves a NaN what it is. So in masked tiles values that are not finite are taken for 0, and if
// there were any, a second product of ones, [row sees key] [value is not finite], counts them for
// each row and column: where the count is above 0 the output becomes NaN. Weights of masked keys
// are -0, so that this product knows them.
//
// Banks. Staged rows are padded by 16 bytes: an odd number of pieces of 16 bytes, so that the
// eight rows of ldmatrix lie in different banks, as do the values of 8 columns and 4 pairs of keys
// of fp32, which has no transposing ldmatrix. Rows of results are padded by 8, since half a warp
// writes pairs of four rows. Replays are left where copies take two rows or more at a time (D of
// 32 and 16 bits or less), and in results of few columns.
//
// Tried and rejected, with the modelled time of the first shape, 9.0 us of which 3 us are the
// launch and the issue of instructions is the limit: floats that inline assembly takes as bits, so
// that every split moves registers, and scores added up after each 8 products: 13.5 us. A test of
// every value of a masked tile as it is multiplied, instead of one look at the tile before, and
// weights that a test of their bits turned into integers: 10.8 us. Maxima and sums of chunks
// instead of normalised results: one float a row more, so that fewer chunks had room, 10.0 us.
//
// Considered and rejected: fp32 as two f16, three products at twice the rate of tf32 (1.7 us less
// of tensor cores, but both the bytes and the instructions that split would be the limit before,
// and rows would need scales against overflow); splitting keys once into shared memory (twice the
// space for half of the conversions); a form for few queries where the warps share the keys (with
// 16 rows or less three of four warps rest, but then memory is the limit: a tile's 32 KiB take a
// multiprocessor's share of it 1,780 clocks, and a warp as long).
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "abi.h"
#include "common/device.h"
#include "common/warp_attention.h"

namespace {

constexpr int kWarps = 4, kThreads = kWarps * kWarp;
constexpr int kRows = 16 * kWarps;  // of a tile: a query of a query head each
constexpr int kKeys = 64;           // of a tile
constexpr int kMostChunks = 32;     // of the keys of a tile of rows

constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}
constexpr std::int64_t ceil_div(std::int64_t n, std::int64_t unit) { return (n + unit - 1) / unit; }

// --- what the host knows ---

struct Attention {
  const void *q, *k, *v;
  void* o;
  float* lse;  // or null
  assay_stride sq, sk, sv, so;
  std::int64_t window;  // 0: none
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

// --- what is visible ---

struct Keys {
  std::int32_t begin, end;
};

__host__ __device__ Keys visible_keys(std::int64_t i, std::int64_t Nq, std::int64_t Nk, bool causal,
                                      std::int64_t window) {
  const std::int64_t at = i + Nk - Nq;  // the last key that causality admits
  const auto clamped = [&](std::int64_t j) {
    return static_cast<std::int32_t>(j < 0 ? 0 : j < Nk ? j : Nk);
  };
  return {window > 0 ? clamped(at - window + 1) : 0, causal ? clamped(at + 1) : clamped(Nk)};
}

// Tiles of keys that rows `first` to `last` see, from `begin` on.
struct KeyTiles {
  std::int32_t begin, end, count;
};

__host__ __device__ KeyTiles visible_tiles(std::int32_t first, std::int32_t last,
                                           std::int32_t group, std::int64_t Nq, std::int64_t Nk,
                                           bool causal, std::int64_t window) {
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

// --- elements ---

// fp8 is staged as f16, which holds all its values.
template <class T>
using Stored = std::conditional_t<std::is_same_v<T, __nv_fp8_e4m3>, __half, T>;
template <class T>
constexpr int kPiece = 16 / sizeof(Stored<T>);  // elements that go to shared memory at a time

__device__ std::uint32_t f16x2_of_fp8(std::uint32_t two) {
  std::uint32_t y;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(y) : "h"(static_cast<std::uint16_t>(two)));
  return y;
}

template <class T>
__device__ void copy_piece(T* to, const T* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}
__device__ void copy_piece(__half* to, const __nv_fp8_e4m3* from) {
  const uint2 x = *reinterpret_cast<const uint2*>(from);
  *reinterpret_cast<uint4*>(to) = make_uint4(f16x2_of_fp8(x.x), f16x2_of_fp8(x.x >> 16),
                                             f16x2_of_fp8(x.y), f16x2_of_fp8(x.y >> 16));
}

__device__ void copy_element(float* to, const float* from) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(to)), "l"(from)
               : "memory");
}
__device__ void copy_element(__half* to, const __nv_fp8_e4m3* from) {
  *to = __ushort_as_half(static_cast<unsigned short>(f16x2_of_fp8(from->__x)));
}
template <class T>
__device__ void copy_element(T* to, const T* from) {
  *to = *from;
}

__device__ void put(float* p, float x) { *p = x; }
__device__ void put(__half* p, float x) { *p = __float2half(x); }
__device__ void put(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }

__device__ float4 load4(const float* p) { return *reinterpret_cast<const float4*>(p); }
__device__ void store4(float* p, float4 x) { *reinterpret_cast<float4*>(p) = x; }

// Two weights or results in a register, the first in the lower half.
template <class S>
__device__ std::uint32_t pack(float x, float y) {
  std::uint32_t both;
  if constexpr (std::is_same_v<S, __half>) {
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(both) : "f"(x), "f"(y));
  } else {
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(both) : "f"(x), "f"(y));
  }
  return both;
}
template <class S>
__device__ float2 unpack(std::uint32_t both) {
  if constexpr (std::is_same_v<S, __half>) {
    return make_float2(__half2float(__ushort_as_half(static_cast<unsigned short>(both))),
                       __half2float(__ushort_as_half(static_cast<unsigned short>(both >> 16))));
  } else {
    return make_float2(__uint_as_float(both << 16), __uint_as_float(both & 0xffff0000));
  }
}
template <class S>
__device__ void store4(S* p, float4 x) {
  *reinterpret_cast<uint2*>(p) = make_uint2(pack<S>(x.x, x.y), pack<S>(x.z, x.w));
}

// --- staging ---

// Rows of an array and where they go. `width` elements of a row exist, zeros fill up to `padded`.
struct Staging {
  std::int32_t width, padded, stride;  // stride: of a staged row
  bool vector;
};

__device__ std::int32_t log2_above(std::int32_t n) { return n <= 1 ? 0 : 32 - __clz(n - 1); }

// Row r is at row(r), and exists where r < n. A thread has 16 bytes of every few rows.
template <class T, class Row>
__device__ void stage(Stored<T>* to, const Staging& s, std::int32_t n, const Row& row) {
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  if (s.vector) {
    const std::int32_t log = log2_above(s.padded / kPiece<T>);
    const std::int32_t d = (thread & ((1 << log) - 1)) * kPiece<T>, step = kThreads >> log;
    if (d >= s.padded) return;
    std::int32_t r = thread >> log;
    Stored<T>* at = to + r * s.stride + d;
    const std::int32_t filled = d < s.width ? n : 0;
#pragma unroll 4
    for (; r < filled; r += step, at += step * s.stride) copy_piece(at, row(r) + d);
    for (; r < kRows; r += step, at += step * s.stride)
      *reinterpret_cast<uint4*>(at) = make_uint4(0, 0, 0, 0);
    return;
  }
  for (std::int32_t r = thread / kWarp; r < kRows; r += kWarps) {
    for (std::int32_t d = thread % kWarp; d < s.padded; d += kWarp) {
      if (r < n && d < s.width) {
        copy_element(to + r * s.stride + d, row(r) + d);
      } else {
        to[r * s.stride + d] = Stored<T>(0.0f);
      }
    }
  }
}
static_assert(kRows == kKeys, "queries, keys and values are staged alike");

// --- products ---

template <class S>
__device__ void multiply16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                           std::uint32_t b1) {
  if constexpr (std::is_same_v<S, __half>) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

__device__ void load_matrices_transposed(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

// fp32 as hi + lo, both tf32. All in registers of bits, as ldmatrix and mma have them.
__device__ Split split_bits(std::uint32_t x) {
  Split s;
  asm("cvt.rna.tf32.f32 %0, %2;\n\tsub.f32 %1, %2, %0;" : "=&r"(s.hi), "=r"(s.lo) : "r"(x));
  return s;
}

__device__ Split split_bits(float x) {
  Split s;
  asm("cvt.rna.tf32.f32 %0, %2;\n\tsub.f32 %1, %2, %0;" : "=&r"(s.hi), "=r"(s.lo) : "f"(x));
  return s;
}
// In place: else each loop copies its sums.
__device__ void add_to(float& sum, float x) { asm("add.f32 %0, %0, %1;" : "+f"(sum) : "f"(x)); }

struct SplitRows {
  std::uint32_t hi[4], lo[4];
  template <class X>
  __device__ void set(int i, X x) {
    const Split s = split_bits(x);
    hi[i] = s.hi;
    lo[i] = s.lo;
  }
};

// c = a b instead of c += a b.
__device__ void multiply_first(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                               std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%10, %10, %10, %10};"
      : "=f"(c[0]), "=f"(c[1]), "=f"(c[2]), "=f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(0.0f));
}

// The products that matter, the small ones first.
template <bool kFirst>
__device__ void multiply_split(float (&c)[4], const SplitRows& a, const Split& b0,
                               const Split& b1) {
  if (kFirst) {
    multiply_first(c, a.lo, b0.hi, b1.hi);
  } else {
    multiply(c, a.lo, b0.hi, b1.hi);
  }
  multiply(c, a.hi, b0.lo, b1.lo);
  multiply(c, a.hi, b0.hi, b1.hi);
}

// The halves that are NaN or infinite, as masks.
template <class S>
__device__ std::uint32_t not_finite(std::uint32_t pair) {
  constexpr std::uint32_t kExponent = std::is_same_v<S, __half> ? 0x7c007c00 : 0x7f807f80;
  constexpr std::uint32_t kCarry = 0x80008000 - kExponent;
  const std::uint32_t found = ((pair & kExponent) + kCarry) & 0x80008000;
  return (found >> 15) * 0xffff;
}
template <>
__device__ std::uint32_t not_finite<float>(std::uint32_t x) {
  return (x & 0x7f800000) == 0x7f800000 ? ~0u : 0;
}

// The weight of a masked key: 0 as any other, but known by its sign.
constexpr float kMaskedWeight = -0.0f;
__device__ float one_if_visible(float weight) { return fmaxf(copysignf(1.0f, weight), 0.0f); }

// 16 rows of a warp and what they have seen. A thread has columns 2t and 2t + 1 of rows g and
// g + 8: index 2 h + e of an accumulator, t = lane % 4, g = lane / 4.
template <class S, int kOut>
struct WarpTile {
  static constexpr bool kSplit = std::is_same_v<S, float>;
  static constexpr int kKeyTiles = kKeys / 8, kOutTiles = kOut / 8;
  static constexpr int kStride = kOut + 16 / sizeof(S);  // of staged values
  float p[kKeyTiles][4];                                 // scores, then weights
  float out[kOutTiles][4];
  float max[2], sum[2];  // sum: over the thread's columns

  __device__ WarpTile() {
#pragma unroll
    for (auto& tile : out) {
#pragma unroll
      for (float& x : tile) x = 0;
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      max[h] = -INFINITY;
      sum[h] = 0;
    }
  }

  // At least one step. It takes 64 bytes of each row: 16 elements of fp32, 32 of 16 bits.
  __device__ void scores(std::uint32_t q, std::uint32_t k, std::int32_t stride_bytes,
                         std::int32_t steps) {
    const int lane = threadIdx.x % kWarp;
    std::uint32_t a_at = q + lane % 16 * stride_bytes + lane / 16 * 16;
    std::uint32_t b_at = k + (lane / 16 * 8 + lane % 8) * stride_bytes + lane / 8 % 2 * 16;
    const std::uint32_t two_tiles = 16 * stride_bytes;
#pragma unroll
    for (auto& tile : p) {
#pragma unroll
      for (float& x : tile) x = 0;
    }
#pragma unroll 1
    do {
      std::uint32_t a[2][4];
      load_matrices(a[0], a_at);
      load_matrices(a[1], a_at + 32);
      if constexpr (kSplit) {
        add_products_split(a, b_at, two_tiles);
      } else {
        std::uint32_t at = b_at;
#pragma unroll
        for (int n = 0; n < kKeyTiles; n += 2, at += two_tiles) {
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            std::uint32_t b[4];
            load_matrices(b, at + half * 32);
            multiply16<S>(p[n], a[half], b[0], b[1]);
            multiply16<S>(p[n + 1], a[half], b[2], b[3]);
          }
        }
      }
      a_at += 64;
      b_at += 64;
    } while (--steps > 0);
  }

  // Tensor cores cut sums off instead of rounding them: of a score in the hundreds, whose terms
  // have one sign, too much is lost for exp. So its long sum is one of fp32, of 16 terms each.
  __device__ void add_products_split(const std::uint32_t (&raw)[2][4], std::uint32_t at,
                                     std::uint32_t two_tiles) {
    SplitRows a[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
#pragma unroll
      for (int i = 0; i < 4; ++i) a[half].set(i, raw[half][i]);
    }
#pragma unroll
    for (int n = 0; n < kKeyTiles; n += 2, at += two_tiles) {
      float part[2][4];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        std::uint32_t words[4];
        load_matrices(words, at + half * 32);
        const Split b[4] = {split_bits(words[0]), split_bits(words[1]), split_bits(words[2]),
                            split_bits(words[3])};
        if (half == 0) {
          multiply_split<true>(part[0], a[half], b[0], b[1]);
          multiply_split<true>(part[1], a[half], b[2], b[3]);
        } else {
          multiply_split<false>(part[0], a[half], b[0], b[1]);
          multiply_split<false>(part[1], a[half], b[2], b[3]);
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        add_to(p[n][i], part[0][i]);
        add_to(p[n + 1][i], part[1][i]);
      }
    }
  }

  // Scores, in units of log 2 after `scale`, become weights relative to the running maximum. Where
  // the tile is masked a row sees the columns from `from` up to `to`.
  template <bool kMasked>
  __device__ void weights(float scale, const int (&from)[2], const int (&to)[2]) {
    const int t = threadIdx.x % 4;
    float keep[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const auto visible = [&](int n, int e) {
        const int column = n * 8 + 2 * t + e;
        return !kMasked || (column >= from[h] && column < to[h]);
      };
      float largest = max[h];
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = p[n][2 * h + e];
          x *= scale;
          // Selected, not added: what is masked may be NaN.
          if (!visible(n, e)) x = -INFINITY;
          largest = fmaxf(largest, x);
        }
      }
      largest = fmaxf(largest, __shfl_xor_sync(kAll, largest, 1));
      largest = fmaxf(largest, __shfl_xor_sync(kAll, largest, 2));
      const float base = largest == -INFINITY ? 0.0f : largest;  // nothing seen so far
      keep[h] = exp2_fast(max[h] - base);
      float added = 0;
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = p[n][2 * h + e];
          x = exp2_fast(x - base);
          added += x;
          if (!visible(n, e)) x = kMaskedWeight;
        }
      }
      sum[h] = sum[h] * keep[h] + added;
      max[h] = largest;
    }
    // After a few tiles maxima rarely grow.
    if (__all_sync(kAll, keep[0] == 1 && keep[1] == 1)) return;
#pragma unroll
    for (auto& tile : out) {
#pragma unroll
      for (int i = 0; i < 4; ++i) tile[i] *= keep[i / 2];
    }
  }

  // Values that are not finite are left out of a masked tile, and spoil() puts them into the rows
  // that see them: 0 times NaN would be NaN in the others too.
  __device__ void add_values(const S* v, bool masked) {
    if (masked && any_not_finite(v)) {
      add_products<true>(v);
      spoil(v);
    } else {
      add_products<false>(v);
    }
  }

  __device__ static bool any_not_finite(const S* v) {
    constexpr int kRowPieces = kOut * static_cast<int>(sizeof(S)) / 16;
    const int lane = threadIdx.x % kWarp;
    const S* at = v + lane / kRowPieces * kStride + lane % kRowPieces * (16 / sizeof(S));
    std::uint32_t bad = 0;
    float zero = 0;  // NaN with the first value that is not finite
#pragma unroll 4
    for (int r = 0; r < kKeys; r += kWarp / kRowPieces, at += kWarp / kRowPieces * kStride) {
      const uint4 x = *reinterpret_cast<const uint4*>(at);
      for (const std::uint32_t word : {x.x, x.y, x.z, x.w}) {
        if constexpr (kSplit) {
          zero = fmaf(__uint_as_float(word), 0.0f, zero);
        } else {
          bad |= not_finite<S>(word);
        }
      }
    }
    return __any_sync(kAll, bad != 0 || zero != 0);
  }

  template <bool kSelect>
  __device__ void add_products(const S* v) {
    if constexpr (kSplit) {
      add_products32<kSelect>(v);
    } else {
      add_products16<kSelect>(v);
    }
  }

  // The multiplicand's columns t and t + 4 are called keys 2t and 2t + 1: those of the
  // accumulators, so that weights need not move.
  template <bool kSelect>
  __device__ void add_products32(const float* v) {
    const int lane = threadIdx.x % kWarp, t = lane % 4, g = lane / 4;
#pragma unroll
    for (int j = 0; j < kKeyTiles; ++j) {
      SplitRows a;
      a.set(0, p[j][0]);
      a.set(1, p[j][2]);
      a.set(2, p[j][1]);
      a.set(3, p[j][3]);
      const auto* at = reinterpret_cast<const std::uint32_t*>(v) + (j * 8 + 2 * t) * kStride + g;
#pragma unroll
      for (int n = 0; n < kOutTiles; ++n) {
        std::uint32_t x0 = at[n * 8], x1 = at[n * 8 + kStride];
        if (kSelect) {
          x0 &= ~not_finite<S>(x0);
          x1 &= ~not_finite<S>(x1);
        }
        multiply_split<false>(out[n], a, split_bits(x0), split_bits(x1));
      }
    }
  }

  // Of 16 keys and 16 columns: two tiles of the output.
  __device__ static std::uint32_t values16_at(const S* v) {
    const int lane = threadIdx.x % kWarp;
    return shared_address(v + (lane % 8 + lane / 8 % 2 * 8) * kStride + lane / 16 * 8);
  }

  template <bool kSelect>
  __device__ void add_products16(const S* v) {
    const std::uint32_t at = values16_at(v);
#pragma unroll
    for (int j = 0; j < kKeyTiles; j += 2) {
      std::uint32_t hi[4], lo[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float x = p[j + i / 2][i % 2 * 2], y = p[j + i / 2][i % 2 * 2 + 1];
        hi[i] = pack<S>(x, y);
        const float2 rounded = unpack<S>(hi[i]);
        lo[i] = pack<S>(x - rounded.x, y - rounded.y);
      }
#pragma unroll
      for (int n = 0; n < kOutTiles; n += 2) {
        std::uint32_t b[4];
        load_matrices_transposed(b, at + (j * 8 * kStride + n * 8) * sizeof(S));
        if (kSelect) {
#pragma unroll
          for (std::uint32_t& pair : b) pair &= ~not_finite<S>(pair);
        }
        multiply16<S>(out[n], lo, b[0], b[1]);
        multiply16<S>(out[n + 1], lo, b[2], b[3]);
        multiply16<S>(out[n], hi, b[0], b[1]);
        multiply16<S>(out[n + 1], hi, b[2], b[3]);
      }
    }
  }

  // Counts, by the same products of ones, the values that are not finite and that a row sees.
  __device__ void spoil(const S* v) {
    // Else the compiler keeps what add_products() has read, in more registers than there are.
    asm volatile("" ::: "memory");
    const int lane = threadIdx.x % kWarp, t = lane % 4, g = lane / 4;
#pragma unroll 1  // it is rare: small rather than fast
    for (int n = 0; n < kOutTiles; n += 2) {
      float count[2][4] = {};
#pragma unroll
      for (int j = 0; j < kKeyTiles; j += 2) {
        float sees[2][4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          sees[0][i] = one_if_visible(p[j][i]);
          sees[1][i] = one_if_visible(p[j + 1][i]);
        }
        if constexpr (kSplit) {
#pragma unroll
          for (int jj = 0; jj < 2; ++jj) {
            const std::uint32_t a[4] = {__float_as_uint(sees[jj][0]), __float_as_uint(sees[jj][2]),
                                        __float_as_uint(sees[jj][1]), __float_as_uint(sees[jj][3])};
            const auto* at = reinterpret_cast<const std::uint32_t*>(v) +
                             ((j + jj) * 8 + 2 * t) * kStride + g + n * 8;
            const std::uint32_t one = __float_as_uint(1.0f);
#pragma unroll
            for (int nn = 0; nn < 2; ++nn) {
              multiply(count[nn], a, not_finite<S>(at[nn * 8]) & one,
                       not_finite<S>(at[nn * 8 + kStride]) & one);
            }
          }
        } else {
          const std::uint32_t a[4] = {
              pack<S>(sees[0][0], sees[0][1]), pack<S>(sees[0][2], sees[0][3]),
              pack<S>(sees[1][0], sees[1][1]), pack<S>(sees[1][2], sees[1][3])};
          std::uint32_t b[4];
          load_matrices_transposed(b, values16_at(v) + (j * 8 * kStride + n * 8) * sizeof(S));
          const std::uint32_t ones = pack<S>(1, 1);
#pragma unroll
          for (std::uint32_t& pair : b) pair = not_finite<S>(pair) & ones;
          multiply16<S>(count[0], a, b[0], b[1]);
          multiply16<S>(count[1], a, b[2], b[3]);
        }
      }
#pragma unroll
      for (int m = 0; m < kOutTiles; m += 2) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if (m == n && count[0][i] > 0) out[m][i] = NAN;
          if (m == n && count[1][i] > 0) out[m + 1][i] = NAN;
        }
      }
    }
  }

  // The sums over all columns, in every thread of a row.
  __device__ void add_up_columns() {
#pragma unroll
    for (float& x : sum) {
      x += __shfl_xor_sync(kAll, x, 1);
      x += __shfl_xor_sync(kAll, x, 2);
    }
  }
};

// --- scores that are more than products ---

// A thread's view of one of its rows.
struct RowView {
  std::int32_t query, last;  // last: the key of its own position, to which causality is aligned
  Keys keys;                 // none where there is no row
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
    stage<T>(k, {a.D, padded, stride, a.vector_k}, min(tile.keys.end - j, kKeys),
             [&](std::int32_t r) { return from + r * a.sk.n; });
  };
  const auto stage_values = [&](std::int32_t j) {
    const T* from = values + j * a.sv.n;
    stage<T>(v, {min(a.Dv - slice, kOut), kOut, State::kStride, a.vector_v},
             min(tile.keys.end - j, kKeys), [&](std::int32_t r) { return from + r * a.sv.n; });
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
    stage<T>(q, {a.D, padded, stride, a.vector_q}, tile.rows,
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
      state.scores(shared_address(q) + warp * 16 * row_bytes, shared_address(k), row_bytes,
                   a.score_steps);
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

template <class T>
int launch(assay_ctx* ctx, Attention& a) {
  constexpr std::int32_t kWidest = 2048;  // far above what shared memory has room for
  if (a.D > kWidest) return ASSAY_ENOTSUP;
  a.score_steps =
      std::max(1, static_cast<std::int32_t>(ceil_div(a.D * std::int64_t{sizeof(Stored<T>)}, 64)));
  if (a.Dv <= 32) return launch<T, 32>(ctx, a);
  if (a.Dv <= 64) return launch<T, 64>(ctx, a);
  return launch<T, 128>(ctx, a);
}

bool valid(const fa_params* p, std::int64_t queries, std::int64_t keys, const void* q,
           const void* k, const void* v, const void* o) {
  if (p == nullptr || p->B < 0 || p->Hq < 0 || p->Hkv < 0 || p->Nq < 0 || p->Nk < 0 || p->D < 0 ||
      p->Dv < 0 || queries < 0 || keys < 0)
    return false;
  if (p->Hkv == 0 ? p->Hq != 0 : p->Hq % p->Hkv != 0) return false;
  const bool any_q = queries > 0 && p->Hq > 0, any_k = keys > 0 && p->Hkv > 0;
  return (q != nullptr || !any_q || p->D == 0) && (k != nullptr || !any_k || p->D == 0) &&
         (v != nullptr || !any_k || p->Dv == 0) && (o != nullptr || !any_q || p->Dv == 0);
}
bool valid(const fa_params* p, const void* q, const void* k, const void* v, const void* o) {
  return p != nullptr && valid(p, p->B * p->Nq, p->B * p->Nk, q, k, v, o);
}

// Whether every row of an array begins at a multiple of `bytes`, and is as long.
bool aligned(const void* data, const assay_stride& s, std::int64_t width, std::int64_t element,
             std::int64_t bytes) {
  const std::int64_t n = bytes / element;
  return reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(bytes) == 0 &&
         s.b % n == 0 && s.h % n == 0 && s.n % n == 0 && width % n == 0;
}

struct Arrays {
  const void *q, *k, *v;
  void* o;
  float* lse;
};

// Extras are set by the caller.
int forward(assay_ctx* ctx, const fa_params& p, const Arrays& arrays, Attention a) {
  const bool fp8 = a.scales != nullptr;
  if (p.dtype != ASSAY_F32 && p.dtype != ASSAY_BF16 && (p.dtype != ASSAY_F16 || fp8))
    return ASSAY_ENOTSUP;
  if (p.B == 0 || p.Hq == 0 || p.Nq == 0) return ASSAY_OK;
  const std::int64_t group = p.Hq / p.Hkv, rows = p.Nq * group;
  constexpr std::int64_t kMost = INT_MAX - 2 * kRows;
  for (const std::int64_t n : {p.B, p.Hq, rows, p.Nk, p.D, p.Dv, p.B * p.Hq}) {
    if (n > kMost) return ASSAY_ENOTSUP;
  }
  a.q = arrays.q;
  a.k = arrays.k;
  a.v = arrays.v;
  a.o = arrays.o;
  a.lse = arrays.lse;
  a.sq = p.sq;
  a.sk = p.sk;
  a.sv = p.sv;
  a.so = p.so;
  a.window = p.window > 0 ? std::min(p.window, p.Nq + p.Nk + 1) : 0;
  a.items = static_cast<std::int32_t>(p.B);
  a.Hq = static_cast<std::int32_t>(p.Hq);
  a.Hkv = static_cast<std::int32_t>(p.Hkv);
  a.group = static_cast<std::int32_t>(group);
  a.Nq = static_cast<std::int32_t>(p.Nq);
  a.Nk = static_cast<std::int32_t>(p.Nk);
  a.D = static_cast<std::int32_t>(p.D);
  a.Dv = static_cast<std::int32_t>(p.Dv);
  a.scale = p.scale;
  a.causal = p.causal != 0;
  a.bf16_output = p.dtype == ASSAY_BF16;
  const std::int64_t output = p.dtype == ASSAY_F32 ? 4 : 2, input = fp8 ? 1 : output;
  const std::int64_t piece = fp8 ? 8 : 16;
  a.vector_q = aligned(a.q, a.sq, p.D, input, piece);
  a.vector_k = aligned(a.k, a.sk, p.D, input, piece);
  a.vector_v = aligned(a.v, a.sv, p.Dv, input, piece);
  a.vector_o = aligned(a.o, a.so, p.Dv, output, 4 * output);
  a.row_tiles = static_cast<std::int32_t>(ceil_div(rows, kRows));
  a.partial_width = static_cast<std::int32_t>(round_up(p.Dv, 4));
  if (fp8) return launch<__nv_fp8_e4m3>(ctx, a);
  if (p.dtype == ASSAY_F32) return launch<float>(ctx, a);
  return p.dtype == ASSAY_BF16 ? launch<__nv_bfloat16>(ctx, a) : launch<__half>(ctx, a);
}

}  // namespace

extern "C" {

int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k, const void* v,
               void* o, float* lse) {
  if (!valid(p, q, k, v, o)) return ASSAY_EINVAL;
  return forward(ctx, *p, {q, k, v, o, lse}, {});
}

int fa_forward_extra(assay_ctx* ctx, const fa_params* p, const fa_extra* e, const void* q,
                     const void* k, const void* v, void* o, float* lse) {
  if (!valid(p, q, k, v, o)) return ASSAY_EINVAL;
  Attention a{};
  if (e != nullptr) {
    a.softcap = e->softcap;
    a.alibi = e->alibi;
    a.sink = e->sink;
    a.kv_len = e->kv_len;
  }
  return forward(ctx, *p, {q, k, v, o, lse}, a);
}

int fa_forward_varlen(assay_ctx* ctx, const fa_params* p, const fa_varlen* lengths, const void* q,
                      const void* k, const void* v, void* o, float* lse) {
  if (lengths == nullptr || lengths->cu_q == nullptr || lengths->cu_k == nullptr ||
      !valid(p, lengths->total_q, lengths->total_k, q, k, v, o)) {
    return ASSAY_EINVAL;
  }
  Attention a{};
  a.cu_q = lengths->cu_q;
  a.cu_k = lengths->cu_k;
  return forward(ctx, *p, {q, k, v, o, lse}, a);
}

int fa_forward_bias(assay_ctx* ctx, const fa_params* p, const fa_bias* shape, const float* bias,
                    const void* q, const void* k, const void* v, void* o, float* lse) {
  if (!valid(p, q, k, v, o) || shape == nullptr) return ASSAY_EINVAL;
  const auto fits = [](std::int64_t size, std::int64_t full) { return size == full || size == 1; };
  if (!fits(shape->B, p->B) || !fits(shape->Hq, p->Hq) || !fits(shape->Nq, p->Nq) ||
      !fits(shape->Nk, p->Nk)) {
    return ASSAY_EINVAL;
  }
  if (bias == nullptr && shape->B != 0 && shape->Hq != 0 && shape->Nq != 0 && shape->Nk != 0)
    return ASSAY_EINVAL;
  Attention a{};
  a.bias = bias;
  a.bias_j = shape->Nk == 1 ? 0 : 1;
  a.bias_i = shape->Nq == 1 ? 0 : shape->Nk;
  a.bias_h = shape->Hq == 1 ? 0 : shape->Nq * shape->Nk;
  a.bias_b = shape->B == 1 ? 0 : shape->Hq * shape->Nq * shape->Nk;
  return forward(ctx, *p, {q, k, v, o, lse}, a);
}

int fa_forward_fp8(assay_ctx* ctx, const fa_params* p, const float* scales, const std::uint8_t* q,
                   const std::uint8_t* k, const std::uint8_t* v, void* o, float* lse) {
  if (scales == nullptr || !valid(p, q, k, v, o)) return ASSAY_EINVAL;
  Attention a{};
  a.scales = scales;
  return forward(ctx, *p, {q, k, v, o, lse}, a);
}

}  // extern "C"
