// Ternary training: a layer and its gradients in one launch, 64 steps of training in another.
//
// The shape. A layer of 256 tokens, 256 rows and 512 columns, x and dy in fp32: 2.1 MB with all
// results, 0.4 us of an H200's 4.8 TB/s, and 0.2 Gflop in three products, 3 us of its 67 Tflop/s of
// fp32. A step of the full model (V 256, d 128, L 3, ff 384: 0.62 M weights) on four documents of
// 128 tokens is 1.9 Gflop in such products, and 0.15 in attention; gradients and Adam move 36 bytes
// a weight, 22 MB, 4.7 us. What a launch costs is 3 us: an operation a launch would be 61 of them a
// step, 183 us, far more than what they do.
//
// Launches. All products of a layer have their tiles in one grid. A training is a persistent one:
// blocks take a phase's tiles, or their warps its rows, wait for all others, and go on to the next
// phase, 18 a layer and 7 beside. The host sees nothing of a step; it looks at the clock after as
// many steps as take 2 % of the budget, 64 at most. Logits are one such launch for 4,096 tokens.
// Generation has a block a document and no barrier of the grid: a token's products are too small.
//
// Precision. A ternary weight is -s, 0 or s, and s, 11 bits, is a number of tf32: exact. fp32 is
// hi + lo, both tf32: two products with weights, three of activations with gradients, which err by
// some 2^-22, what fp32 does anyway. bf16 is tf32 as it is, and takes one. So y and dx cost 4 flops
// a multiplication and addition, dw 6, of 495 Tflop/s: 0.95 us of the shape above. Tensor cores
// truncate the sum at each step, which adds up: of 4,096 terms of one sign 4e-5 were missing on an
// H200. So their sums are of 32 terms, and those are added in fp32.
//
// Tiles. A block of four warps has 64 rows and 64 or 32 columns of a product, a warp 16 rows, and
// stages both operands 128 deep: the depth of a block of weights. A depth runs along rows
// of memory or across them; it is staged as it lies, so that loads are of whole rows, and fragments
// are read by ldmatrix or a float a lane. Weights are unpacked once a tile, not once a warp: lanes
// read two bytes each, the scale and 16 pairs, and exchange them; code times scale takes a mask, a
// conversion and a multiplication with addition. Sums leave by way of shared memory, a row at a
// time: an accumulator's columns are pairs, half a sector wide.
//
// Widths. A tile of 64 by 64 reads least, 8.7 MB for the shape above, but y has 16 of them, 512
// deep, and the busiest multiprocessor would take 4.1 us to issue its instructions. plan_tiles
// takes the widths at which memory, the longest block or an equal share of all blocks take least:
// y in tiles of 32 columns reads 10.8 MB, 2.6 us with what is written, and the longest block takes
// 2.7 us.
//
// Fusions. A norm is a sum over the row that a product reads anyway: the product adds up squares
// while it stages, multiplies by the norm's weights, and divides sums at the end. Gates and what
// they are multiplied with are columns of one tile, so silu(g) u has both at hand, and so has its
// gradient; sums of residuals are stored sums. q, k and v are one matrix, gate and up another: they
// lie so in the blob. Adam's warps have a block of weights each, and round it as soon as it moved.
//
// Attention is products of the same tiles: scores and weighted values, with the tiles above the
// diagonal left out. Probabilities are kept for the way back, 1 MB a layer: they stay in the L2
// cache, as documents are short.
//
// Order. Every sum has a fixed order, those of gradients too: a tile of dw passes over all tokens,
// lookups are added to embeddings token by token. A seed gives one blob.
//
// Banks. Rows along the depth are padded by 4 floats, for ldmatrix; rows across it by 8, so that
// the 4 by 8 floats of a fragment have a bank each. Replays are left where sums leave a tile, two a
// warp, and where bytes of packed blocks lie side by side.
//
// Tried and rejected, with the modelled time of the shape above, 5.7 us of which 3 us are the
// launch: weights chosen by tests of a code's bits, and addresses of fragments that are computed
// anew each time, integer instructions being the limit: 9.6 us. Tiles of 64 columns for all: 7.1
// us, the issue of instructions. Roots of norms summed row by row, 80 exchanges a warp, not 16.
// Four scalar loads in place in every unrolled row, for unaligned operands: twice the code.
//
// Considered and rejected: fp32 as three bf16, exact with codes as they are and scales applied to
// each 128 deep sum (a quarter less of the tensor cores, which are not the limit, for more
// instructions to split); a copy of the weights in fp32 (eight times the bytes of each tile's
// operand); sums of dw split over blocks (atomics have no order).
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdint>
#include <vector>

#include "abi.h"
#include "common/device.h"
#include "common/warp_attention.h"

namespace {

using Index = std::int64_t;

constexpr int kBlock = 128, kBlockBytes = 34, kDenseBytes = 28;
constexpr int kThreads = 128, kWarps = kThreads / kWarp;
constexpr int kRows = 64;    // of a tile, 16 a warp
constexpr int kDepth = 128;  // that a tile stages at a time: a block of weights
constexpr int kAlongStride = kDepth + 4;
template <int kWide>
constexpr int kAcrossStride = kWide + 8;
constexpr int kPart = kDepth * kAcrossStride<kRows>;  // floats of a staged operand
static_assert(kRows * kAlongStride <= kPart);
constexpr int kTileBytes = 2 * kPart * 4;

template <class Task>
__device__ void for_blocks(Index n, const Task& task) {
  for (Index i = blockIdx.x; i < n; i += gridDim.x) task(i);
}
template <class Task>
__device__ void for_warps(Index n, const Task& task) {
  for (Index i = Index{blockIdx.x} * (blockDim.x / kWarp) + threadIdx.x / kWarp; i < n;
       i += Index{gridDim.x} * (blockDim.x / kWarp)) {
    task(i);
  }
}
// i / by and i % by, of numbers that 32 bits have room for: tasks and tokens of a pass.
struct Divided {
  std::uint32_t quotient, remainder;
  __device__ Divided(Index i, Index by)
      : quotient(static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(by)),
        remainder(static_cast<std::uint32_t>(i) - quotient * static_cast<std::uint32_t>(by)) {}
};
__device__ float warp_sum(float x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) x += __shfl_xor_sync(kAll, x, offset);
  return x;
}
__device__ float warp_max(float x) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    x = fmaxf(x, __shfl_xor_sync(kAll, x, offset));
  return x;
}

// --- 1. blocks of weights ---

// Blocks have an even number of bytes: all begin at an even address or none does.
__device__ std::uint32_t load_pair(const std::uint8_t* p) {
  if (reinterpret_cast<std::uintptr_t>(p) % 2 == 0)
    return *reinterpret_cast<const std::uint16_t*>(p);
  return p[0] | p[1] << 8;
}

// A scale, and four codes in the lowest byte.
struct Codes {
  float scale;
  std::uint32_t codes;

  // Exactly (code - 1) scale.
  __device__ float weight(int j) const {
    return static_cast<float>(static_cast<int>(codes >> 2 * j & 3) - 1) * scale;
  }
  __device__ float4 weights() const { return {weight(0), weight(1), weight(2), weight(3)}; }

  // The same but for the sign of zeros, an instruction of each kind a weight: 4^j code times
  // 4^-j scale, less the scale. Nothing is rounded.
  __device__ float4 multiplicands() const {
    const auto part = [this](std::uint32_t mask, float unit) {
      return fmaf(static_cast<float>(codes & mask), unit * scale, -scale);
    };
    return {part(3, 1), part(3 << 2, 0x1p-2f), part(3 << 4, 0x1p-4f), part(3 << 6, 0x1p-6f)};
  }
};

// Where in a block a lane of a group of kLanes reads, for 4 kLanes weights from `first` on:
// the group's first lane the scale, others two bytes of codes each. A pair is for four lanes.
template <int kLanes>
__device__ int pair_place(int first) {
  const int own = static_cast<int>(threadIdx.x) % kLanes;
  return own == 0 ? 0 : first / 4 + 2 * own;
}
template <int kLanes>
__device__ bool has_pair() {
  return static_cast<int>(threadIdx.x) % kLanes <= kLanes / 2;
}
// Of the pairs that the lanes of a group have read, what the lane's four weights need.
template <int kLanes>
__device__ Codes codes_of(std::uint32_t pair) {
  const int lane = threadIdx.x % kWarp, own = lane % kLanes, base = lane - own;
  const std::uint32_t scale = __shfl_sync(kAll, pair, base);
  const std::uint32_t codes = __shfl_sync(kAll, pair, base + 1 + own / 2);
  return {__half2float(__ushort_as_half(static_cast<unsigned short>(scale))), codes >> own % 2 * 8};
}
// All weights of a block, by a warp.
__device__ Codes load_codes(const std::uint8_t* block) {
  return codes_of<kWarp>(has_pair<kWarp>() ? load_pair(block + pair_place<kWarp>(0)) : 0);
}

// A byte of codes a lane, and the bits of the scale, by the mean rule.
struct Packed {
  std::uint32_t scale, codes;
};
__device__ Packed quantize_block(const float4& w) {
  double sum = (fabs(static_cast<double>(w.x)) + fabs(static_cast<double>(w.y))) +
               (fabs(static_cast<double>(w.z)) + fabs(static_cast<double>(w.w)));
  for (int offset = kWarp / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(kAll, sum, offset);
  const double mean = fmin(sum / kBlock, 65504.0);
  // Rounded to odd on the way to fp32, so that the second rounding is as good as the only one.
  std::uint32_t bits = __float_as_uint(__double2float_rz(mean));
  if (static_cast<double>(__uint_as_float(bits)) != mean) bits |= 1;
  const __half scale = __float2half_rn(__uint_as_float(bits));
  const float half = __half2float(scale) / 2;
  const auto code = [half](float x) -> std::uint32_t {
    if (!(half > 0 && fabsf(x) > half)) return 1;
    return x > 0 ? 2 : 0;
  };
  return {__half_as_ushort(scale), code(w.x) | code(w.y) << 2 | code(w.z) << 4 | code(w.w) << 6};
}
__device__ void store_packed(const Packed& p, std::uint8_t* block) {
  const int lane = threadIdx.x % kWarp;
  block[2 + lane] = static_cast<std::uint8_t>(p.codes);
  if (lane < 2) block[lane] = static_cast<std::uint8_t>(p.scale >> 8 * lane);
}

// --- 2. tiles of products ---

template <class T>
__device__ float as_float(T x) {
  return static_cast<float>(x);
}
__device__ float4 load_four(const float* p) { return *reinterpret_cast<const float4*>(p); }
__device__ float4 load_four(const __nv_bfloat16* p) {
  const uint2 raw = *reinterpret_cast<const uint2*>(p);
  return {__uint_as_float(raw.x << 16), __uint_as_float(raw.x & 0xffff0000u),
          __uint_as_float(raw.y << 16), __uint_as_float(raw.y & 0xffff0000u)};
}
// The first n of four, one by one. Rare, so out of the way of what is unrolled.
template <class T>
__device__ __noinline__ float4 load_part(const T* p, int n) {
  float v[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) v[i] = i < n ? as_float(p[i]) : 0;
  return {v[0], v[1], v[2], v[3]};
}
template <class T>
__device__ bool aligned_for_four(const T* p, Index stride) {
  return reinterpret_cast<std::uintptr_t>(p) % (4 * sizeof(T)) == 0 && stride % 4 == 0;
}
__device__ void store_four(float* p, const float4& v) { *reinterpret_cast<float4*>(p) = v; }

// As split(), of the bits of x.
template <bool kExact>
__device__ Split split_bits(std::uint32_t x) {
  if (kExact) return {x, 0};
  Split s;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(s.hi) : "r"(x));
  asm("sub.rn.f32 %0, %1, %2;" : "=r"(s.lo) : "r"(x), "r"(s.hi));
  return s;
}
template <bool kExact>
__device__ void set_bits(Rows16<kExact>& a, int i, std::uint32_t x) {
  const Split s = split_bits<kExact>(x);
  a.hi[i] = s.hi;
  a.lo[i] = s.lo;
}

// An operand whose depth runs along rows of memory: row after row in shared memory, kAlongStride
// apart, read by ldmatrix.
template <bool kIsExact, int kWide>
struct AlongFragments {
  static constexpr bool kExact = kIsExact;
  // Where the lane's part of the warp's fragments is, and those from column k on.
  static __device__ std::uint32_t left_place(const float* tile) {
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    return shared_address(tile + (warp * 16 + lane % 16) * kAlongStride + lane / 16 * 4);
  }
  static __device__ void left(Rows16<kExact>& a, std::uint32_t place, int k) {
    std::uint32_t raw[4];
    load_matrices(raw, place + 4 * k);
#pragma unroll
    for (int i = 0; i < 4; ++i) set_bits(a, i, raw[i]);
  }
  // Of columns 8 n to 8 n + 15.
  static __device__ std::uint32_t right_place(const float* tile) {
    const int lane = threadIdx.x % kWarp;
    return shared_address(tile + (lane / 16 * 8 + lane % 8) * kAlongStride + lane / 8 % 2 * 4);
  }
  static __device__ void right(Split (&b)[4], std::uint32_t place, int k, int n) {
    std::uint32_t raw[4];
    load_matrices(raw, place + 4 * k + n * (8 * 4 * kAlongStride));
#pragma unroll
    for (int i = 0; i < 4; ++i) b[i] = split_bits<kExact>(raw[i]);
  }
};

// One whose depth runs across rows of memory: kAcrossStride floats a step of depth, so that the
// lanes of a fragment, 4 deep and 8 wide, have a bank each.
template <bool kIsExact, int kWide>
struct AcrossFragments {
  static constexpr bool kExact = kIsExact;
  static constexpr int kStride = kAcrossStride<kWide>;
  static __device__ const std::uint32_t* left_place(const float* tile) {
    const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
    return reinterpret_cast<const std::uint32_t*>(tile) + lane % 4 * kStride + warp * 16 + lane / 4;
  }
  static __device__ void left(Rows16<kExact>& a, const std::uint32_t* place, int k) {
    const std::uint32_t* at = place + k * kStride;
    set_bits(a, 0, at[0]);
    set_bits(a, 1, at[8]);
    set_bits(a, 2, at[4 * kStride]);
    set_bits(a, 3, at[4 * kStride + 8]);
  }
  static __device__ const std::uint32_t* right_place(const float* tile) {
    const int lane = threadIdx.x % kWarp;
    return reinterpret_cast<const std::uint32_t*>(tile) + lane % 4 * kStride + lane / 4;
  }
  static __device__ void right(Split (&b)[4], const std::uint32_t* place, int k, int n) {
    const std::uint32_t* at = place + k * kStride + n * 8;
    b[0] = split_bits<kExact>(at[0]);
    b[1] = split_bits<kExact>(at[4 * kStride]);
    b[2] = split_bits<kExact>(at[8]);
    b[3] = split_bits<kExact>(at[4 * kStride + 8]);
  }
};

__device__ int up_to(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }

// `count` rows from `data` on, `stride` apart.
template <class T, int kWide>
struct Along : AlongFragments<sizeof(T) == 2, kWide> {
  const T* data;
  Index stride;
  int count;
  __device__ Along(const T* data, Index stride, Index count)
      : data(data), stride(stride), count(static_cast<int>(count < kWide ? count : kWide)) {}

  // load(p): the lane's four from p on. change(i, v): of those of the warp's row i; kAtOnce rows
  // are read before any is used.
  template <int kAtOnce, class Load, class Change>
  __device__ void stage_rows(float* tile, int k0, int depth, const Load& load,
                             const Change& change) const {
    constexpr int kOwn = kWide / kWarps;
    const int k = threadIdx.x % kWarp * 4, first = static_cast<int>(threadIdx.x) / kWarp * kOwn;
    const bool stored = k < up_to(depth, 8);
    const int there = count - first, zeroed = up_to(count, 16) - first;
    if (zeroed <= 0) return;
    const T* from = data + first * stride + k0 + k;
    float* to = tile + first * kAlongStride + k;
#pragma unroll kAtOnce
    for (int i = 0; i < kOwn; ++i) {
      if (i < zeroed) {
        float4 v{};
        if (i < there) v = load(from);
        change(i, v);
        if (stored) store_four(to, v);
      }
      from += stride;
      to += kAlongStride;
    }
  }
  __device__ void stage(float* tile, int k0, int depth) {
    const auto as_they_are = [](int, float4&) {};
    const int left = depth - static_cast<int>(threadIdx.x % kWarp) * 4;
    if (depth % 4 == 0 && aligned_for_four(data + k0, stride)) {
      stage_rows<4>(
          tile, k0, depth, [=](const T* p) { return left > 0 ? load_four(p) : float4{}; },
          as_they_are);
    } else {
      stage_rows<1>(
          tile, k0, depth, [=](const T* p) { return load_part(p, left); }, as_they_are);
    }
  }
};

// Sums over a warp of 16 numbers a lane: lane i and lane i + 16 get number i's. Lanes exchange
// halves of what they have: 16 exchanges instead of 80.
template <int kLeft = 8>
__device__ float sums_of_16(float (&x)[16]) {
  const bool upper = (threadIdx.x & static_cast<unsigned>(kLeft)) != 0;
#pragma unroll
  for (int i = 0; i < kLeft; ++i) {
    const float other = __shfl_xor_sync(kAll, upper ? x[i] : x[i + kLeft], kLeft);
    x[i] = (upper ? x[i + kLeft] : x[i]) + other;
  }
  if constexpr (kLeft > 1) {
    return sums_of_16<kLeft / 2>(x);
  } else {
    return x[0] + __shfl_xor_sync(kAll, x[0], 16);
  }
}

// Rows of scratch, whole blocks long, that are normed: each is multiplied by the norm's weights.
// What it is to be divided by comes out of the same pass, and is for the product to apply.
struct Normed : Along<float, kRows> {
  const float* weights;
  int d;
  float eps, squares = 0;  // lane i: of the warp's row i
  __device__ Normed(const float* data, Index d, Index count, const float* weights, float eps)
      : Along(data, d, count), weights(weights), d(static_cast<int>(d)), eps(eps) {}

  __device__ void stage(float* tile, int k0, int depth) {
    const float4 w = load_four(weights + k0 + threadIdx.x % kWarp * 4);
    float sums[16] = {};
    stage_rows<16>(
        tile, k0, depth, [](const float* p) { return load_four(p); },
        [&](int i, float4& v) {
          sums[i] = v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
          v = {v.x * w.x, v.y * w.y, v.z * w.z, v.w * w.w};
        });
    squares += sums_of_16(sums);
  }
  // Of the warp's row i, for all lanes.
  __device__ float root(int i) const {
    return 1 / sqrtf(__shfl_sync(kAll, squares, i) / static_cast<float>(d) + eps);
  }
};

// `count` columns from `data` on, a row of memory for each step of depth.
template <class T, int kWide>
struct Across : AcrossFragments<sizeof(T) == 2, kWide> {
  using Fragments = AcrossFragments<sizeof(T) == 2, kWide>;
  const T* data;
  Index stride;
  int count;
  __device__ Across(const T* data, Index stride, Index count)
      : data(data), stride(stride), count(static_cast<int>(count < kWide ? count : kWide)) {}

  // load(p): the lane's four from p on. change(k, v): of those of row k of memory.
  template <int kUnroll, class Load, class Change>
  __device__ void stage_rows(float* tile, int k0, int depth, const Load& load,
                             const Change& change) const {
    constexpr int kLanes = kWide / 4, kAtOnce = kThreads / kLanes;
    const int n = static_cast<int>(threadIdx.x) % kLanes * 4, end = up_to(depth, 8);
    int k = static_cast<int>(threadIdx.x) / kLanes;
    const T* from = data + (k0 + k) * stride + n;
    float* to = tile + k * Fragments::kStride + n;
#pragma unroll kUnroll
    for (; k < end; k += kAtOnce, from += kAtOnce * stride, to += kAtOnce * Fragments::kStride) {
      float4 v{};
      if (k < depth) {
        v = load(from);
        change(k0 + k, v);
      }
      store_four(to, v);
    }
  }
  __device__ void stage(float* tile, int k0, int depth) {
    const auto as_they_are = [](int, float4&) {};
    const int left = count - static_cast<int>(threadIdx.x) % (kWide / 4) * 4;
    if (count % 4 == 0 && aligned_for_four(data, stride)) {
      stage_rows<4>(
          tile, k0, depth, [=](const T* p) { return left > 0 ? load_four(p) : float4{}; },
          as_they_are);
    } else {
      stage_rows<1>(
          tile, k0, depth, [=](const T* p) { return load_part(p, left); }, as_they_are);
    }
  }
};

// The same of rows that are normed, where the roots are known. Their width is that of blocks.
struct NormedAcross : Across<float, kRows> {
  const float *roots, *weights;
  __device__ NormedAcross(const float* data, Index d, const float* roots, const float* weights)
      : Across(data, d, kRows), roots(roots), weights(weights) {}
  __device__ void stage(float* tile, int k0, int depth) {
    const float4 w = load_four(weights + threadIdx.x % (kRows / 4) * 4);
    stage_rows<4>(
        tile, k0, depth, [](const float* p) { return load_four(p); },
        [&](int k, float4& v) {
          const float root = roots[k];
          v = {v.x * root * w.x, v.y * root * w.y, v.z * root * w.z, v.w * root * w.w};
        });
  }
};

// Rows of ternary weights [., cols] along their blocks. A tile's upper half may be `apart` rows
// from its lower one.
template <int kWide>
struct TernaryAlong : AlongFragments<true, kWide> {
  const std::uint8_t* blocks;
  Index row_bytes, apart;
  int count;
  __device__ TernaryAlong(const std::uint8_t* blocks, Index cols, Index first, Index count,
                          Index apart = 0)
      : blocks(blocks + first * (cols / kBlock * kBlockBytes)),
        row_bytes(cols / kBlock * kBlockBytes),
        apart(apart),
        count(static_cast<int>(count < kWide ? count : kWide)) {}

  __device__ void stage(float* tile, int k0, int) {
    const int lane = threadIdx.x % kWarp, first = static_cast<int>(threadIdx.x) / kWarp;
    const int end = up_to(count, 16);
    const std::uint8_t* from =
        blocks + first * row_bytes + k0 / kBlock * kBlockBytes + pair_place<kWarp>(0);
    float* to = tile + first * kAlongStride + 4 * lane;
    for (int half = 0; half < 2; ++half, from += apart * row_bytes) {
#pragma unroll 4
      for (int i = 0; i < kWide / 2;
           i += kWarps, from += kWarps * row_bytes, to += kWarps * kAlongStride) {
        const int row = half * (kWide / 2) + i + first;
        if (row >= end) break;
        const bool reads = has_pair<kWarp>() && row < count;
        store_four(to, codes_of<kWarp>(reads ? load_pair(from) : 0).multiplicands());
      }
    }
  }
};

// Columns `first` to first + kWide of ternary weights, row after row.
template <int kWide>
struct TernaryAcross : AcrossFragments<true, kWide> {
  using Fragments = AcrossFragments<true, kWide>;
  const std::uint8_t* blocks;
  Index row_bytes;
  int first, count = kWide;
  __device__ TernaryAcross(const std::uint8_t* blocks, Index cols, Index first)
      : blocks(blocks + first / kBlock * kBlockBytes),
        row_bytes(cols / kBlock * kBlockBytes),
        first(static_cast<int>(first % kBlock)) {}

  __device__ void stage(float* tile, int k0, int depth) {
    constexpr int kLanes = kWide / 4, kAtOnce = kThreads / kLanes;
    const int n = static_cast<int>(threadIdx.x) % kLanes * 4, end = up_to(depth, 8);
    int k = static_cast<int>(threadIdx.x) / kLanes;
    const std::uint8_t* from = blocks + (k0 + k) * row_bytes + pair_place<kLanes>(first);
    float* to = tile + k * Fragments::kStride + n;
    // Warps stay whole for the exchange: all take as many turns. What is beyond is 0: its scale is.
#pragma unroll 4
    for (int turn = 0; turn < end; turn += kAtOnce, k += kAtOnce, from += kAtOnce * row_bytes,
             to += kAtOnce * Fragments::kStride) {
      const bool reads = has_pair<kLanes>() && k < depth;
      const float4 v = codes_of<kLanes>(reads ? load_pair(from) : 0).multiplicands();
      if (k < end) store_four(to, v);
    }
  }
};

// Sums of a tile of kRows by kWide products: a warp has 16 rows. Those of tensor cores are of kRun
// terms.
template <int kWide>
struct Tile {
  static constexpr int kRun = 32;
  float c[kWide / 8][4];

  __device__ Tile() {
#pragma unroll
    for (auto& part : c) {
#pragma unroll
      for (float& x : part) x = 0;
    }
  }

  // Adds a times b, K deep.
  template <class A, class B>
  __device__ __forceinline__ void add(A& a, B& b, Index K, float* memory) {
    const auto left = A::left_place(memory);
    const auto right = B::right_place(memory + kPart);
    for (Index k0 = 0; k0 < K; k0 += kDepth) {
      const int depth = static_cast<int>(K - k0 < kDepth ? K - k0 : kDepth);
      __syncthreads();  // what was staged before has been used
      a.stage(memory, static_cast<int>(k0), depth);
      b.stage(memory + kPart, static_cast<int>(k0), depth);
      __syncthreads();
      if (static_cast<int>(threadIdx.x) / kWarp * 16 >= a.count) continue;
#pragma unroll 1
      for (int k = 0; k < depth; k += kRun) {
        Tile part;
#pragma unroll 1
        for (int end = k + kRun < depth ? k + kRun : depth, at = k; at < end; at += 8)
          part.add_step(a, b, left, right, at);
        take(part);
      }
    }
  }

  // Adds a step of 8 of depth.
  template <class A, class B, class Left, class Right>
  __device__ __forceinline__ void add_step(A&, B& b, const Left& left, const Right& right, int k) {
    Rows16<A::kExact> rows;
    A::left(rows, left, k);
#pragma unroll
    for (int n = 0; n < kWide / 8; n += 2) {
      if (n * 8 >= b.count) break;
      Split columns[4];
      B::right(columns, right, k, n);
      multiply_split<A::kExact, B::kExact>(c[n], rows, columns[0], columns[1]);
      multiply_split<A::kExact, B::kExact>(c[n + 1], rows, columns[2], columns[3]);
    }
  }

  __device__ __forceinline__ void take(const Tile& part) {
#pragma unroll
    for (int n = 0; n < kWide / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) c[n][i] += part.c[n][i];
    }
  }

  // finish(i, row, values): of each of `count` rows, whose first `width` columns are there, by the
  // warp; i of the warp's rows and `row` of the tile's. Through shared memory, so that what is
  // stored lies side by side.
  template <class Finish>
  __device__ void rows(int count, int width, float* memory, const Finish& finish) const {
    constexpr int kStride = kAcrossStride<kWide>;
    const int lane = threadIdx.x % kWarp, first = static_cast<int>(threadIdx.x) / kWarp * 16;
    float* out = memory + first * kStride;
    __syncthreads();  // the operands have been used
    if (first >= count) return;
#pragma unroll
    for (int n = 0; n < kWide / 8; ++n) {
      if (n * 8 >= width) break;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        *reinterpret_cast<float2*>(out + (lane / 4 + 8 * h) * kStride + n * 8 + lane % 4 * 2) = {
            c[n][2 * h], c[n][2 * h + 1]};
      }
    }
    __syncwarp();
#pragma unroll 4
    for (int i = 0; i < 16; ++i) {
      if (first + i >= count) break;
      finish(i, first + i, out + i * kStride);
    }
    __syncwarp();
  }
};

__device__ void put(float* p, float x) { *p = x; }
__device__ void put(__nv_bfloat16* p, float x) { *p = __float2bfloat16_rn(x); }

// Columns of a row of a tile, of which `left` remain.
template <int kWide, class Do>
__device__ void columns(Index left, const Do& column) {
#pragma unroll
  for (int j = 0; j < kWide; j += kWarp) {
    if (j + static_cast<int>(threadIdx.x % kWarp) < left)
      column(j + static_cast<int>(threadIdx.x % kWarp));
  }
}

// A tile of a times b, K deep. finish(a, i, row, values): of each row, as in Tile.
template <int kWide, class A, class B, class Finish>
__device__ void product(A a, B b, Index K, float* memory, const Finish& finish) {
  Tile<kWide> tile;
  tile.add(a, b, K, memory);
  tile.rows(a.count, b.count, memory,
            [&](int i, int row, const float* values) { finish(a, i, row, values); });
}

// Stores a tile whose first element `to` is, where `left` columns remain.
template <int kWide, class T>
struct Store {
  T* to;
  Index stride, left;
  template <class A>
  __device__ void operator()(const A&, int, int row, const float* values) const {
    columns<kWide>(left, [&](int j) { put(to + row * stride + j, values[j]); });
  }
};

// --- 3. the linear layer ---

template <class T>
struct LinearLayer {
  Index M, rows, cols;
  const T *x, *dy;
  const std::uint8_t* blocks;
  T *y, *dx;
  float* dw;
  bool wide_y = true, wide_dx = true, wide_dw = true;  // 64 columns a tile, or 32
  Index tiles_y = 0, tiles_dx = 0, tiles_dw = 0;
};

template <class T, int kWide>
__device__ void outputs(const LinearLayer<T>& l, Index tile, float* memory) {
  const Index across = ceil_div(l.rows, kWide), m = tile / across * kRows,
              n = tile % across * kWide;
  product<kWide>(Along<T, kRows>(l.x + m * l.cols, l.cols, l.M - m),
                 TernaryAlong<kWide>(l.blocks, l.cols, n, l.rows - n), l.cols, memory,
                 Store<kWide, T>{l.y + m * l.rows + n, l.rows, l.rows - n});
}
template <class T, int kWide>
__device__ void input_gradients(const LinearLayer<T>& l, Index tile, float* memory) {
  const Index across = l.cols / kWide, m = tile / across * kRows, n = tile % across * kWide;
  product<kWide>(Along<T, kRows>(l.dy + m * l.rows, l.rows, l.M - m),
                 TernaryAcross<kWide>(l.blocks, l.cols, n), l.rows, memory,
                 Store<kWide, T>{l.dx + m * l.cols + n, l.cols, l.cols - n});
}
template <class T, int kWide>
__device__ void weight_gradients(const LinearLayer<T>& l, Index tile, float* memory) {
  const Index across = l.cols / kWide, m = tile / across * kRows, n = tile % across * kWide;
  product<kWide>(Across<T, kRows>(l.dy + m, l.rows, l.rows - m),
                 Across<T, kWide>(l.x + n, l.cols, l.cols - n), l.M, memory,
                 Store<kWide, float>{l.dw + m * l.cols + n, l.cols, l.cols - n});
}

template <class T>
__global__ void __launch_bounds__(kThreads, 3) linear(const __grid_constant__ LinearLayer<T> l) {
  extern __shared__ __align__(16) float memory[];
  Index tile = blockIdx.x;
  if (tile < l.tiles_dw) {
    if (l.wide_dw) return weight_gradients<T, 64>(l, tile, memory);
    return weight_gradients<T, 32>(l, tile, memory);
  }
  tile -= l.tiles_dw;
  if (tile < l.tiles_y) {
    if (l.wide_y) return outputs<T, 64>(l, tile, memory);
    return outputs<T, 32>(l, tile, memory);
  }
  tile -= l.tiles_y;
  if (l.wide_dx) return input_gradients<T, 64>(l, tile, memory);
  input_gradients<T, 32>(l, tile, memory);
}

bool set_shared(const void* kernel, int bytes) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) ==
         cudaSuccess;
}

// Widths of tiles by what memory, the longest block and an equal share of all take on an H200. A
// step of eight of depth keeps a multiprocessor for 36 clocks and, for each 8 columns, 8.5, or 12
// where neither operand is exact: it issues as many instructions a warp, copies included.
template <class T>
void plan_tiles(LinearLayer<T>& l) {
  constexpr double kBytesAClock = 2424;
  const double fast = 8.5, slow = sizeof(T) == 2 ? 8.5 : 12;
  double best = INFINITY;
  for (int wide = 0; wide < 8; ++wide) {
    LinearLayer<T> p = l;
    p.wide_y = (wide & 1) != 0, p.wide_dx = (wide & 2) != 0, p.wide_dw = (wide & 4) != 0;
    double bytes = 0, longest = 0, all = 0;
    const auto tiles = [&](bool is_wide, Index M, Index N, Index K, double column, double weight) {
      const Index width = is_wide ? 64 : 32, n = ceil_div(M, kRows) * ceil_div(N, width);
      const auto depth = static_cast<double>(K), columns = static_cast<double>(width);
      bytes += static_cast<double>(n) * depth * (kRows * sizeof(T) + columns * weight);
      const double clocks = depth / 8 * (36 + columns / 8 * column);
      longest = std::max(longest, clocks);
      all += static_cast<double>(n) * clocks;
      return n;
    };
    p.tiles_y = tiles(p.wide_y, l.M, l.rows, l.cols, fast, 0.5);
    p.tiles_dx = tiles(p.wide_dx, l.M, l.cols, l.rows, fast, 0.5);
    p.tiles_dw = tiles(p.wide_dw, l.rows, l.cols, l.M, slow, sizeof(T));
    const double cost = std::max({bytes / kBytesAClock, longest, all / multiprocessors()});
    if (cost >= best) continue;
    best = cost;
    l = p;
  }
}

template <class T>
int run_linear(assay_ctx* ctx, LinearLayer<T> l) {
  if (l.M < 0 || l.rows < 0 || l.cols < 0 || l.cols % kBlock != 0) return ASSAY_EINVAL;
  if (l.rows * l.cols > 0 && (l.blocks == nullptr || l.dw == nullptr)) return ASSAY_EINVAL;
  if (l.M * l.cols > 0 && (l.x == nullptr || l.dx == nullptr)) return ASSAY_EINVAL;
  if (l.M * l.rows > 0 && (l.dy == nullptr || l.y == nullptr)) return ASSAY_EINVAL;
  if (std::max({l.M, l.rows, l.cols}) > INT_MAX - kDepth) return ASSAY_ENOTSUP;
  plan_tiles(l);
  const Index tiles = l.tiles_y + l.tiles_dx + l.tiles_dw;
  if (tiles > INT_MAX) return ASSAY_ENOTSUP;
  if (tiles == 0) return ASSAY_OK;
  if (!set_shared(reinterpret_cast<const void*>(linear<T>), kTileBytes)) return ASSAY_EINTERNAL;
  linear<T><<<static_cast<unsigned>(tiles), kThreads, kTileBytes, stream_of(ctx)>>>(l);
  return launch_status();
}

// --- 4. conversions of blocks ---

constexpr int kBlocksAtOnce = 32;  // by a block of threads

// A warp has a block at a time; bytes are gathered in shared memory and leave side by side.
__global__ void __launch_bounds__(kThreads)
    quantize(Index n, const float* w, std::uint8_t* blocks) {
  __shared__ std::uint8_t packed[kBlocksAtOnce * kBlockBytes];
  const int lane = threadIdx.x % kWarp;
  const bool vector = aligned_for_four(w, 0);
  for_blocks(ceil_div(n, kBlocksAtOnce), [&](Index group) {
    const Index first = group * kBlocksAtOnce;
    const int count = static_cast<int>(n - first < kBlocksAtOnce ? n - first : kBlocksAtOnce);
    __syncthreads();  // what was packed before has been stored
    for (int i = threadIdx.x / kWarp; i < count; i += kWarps) {
      const float4 v = vector ? load_four(w + (first + i) * kBlock + 4 * lane)
                              : load_part(w + (first + i) * kBlock + 4 * lane, 4);
      store_packed(quantize_block(v), packed + i * kBlockBytes);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < count * kBlockBytes; i += kThreads)
      blocks[first * kBlockBytes + i] = packed[i];
  });
}

__global__ void __launch_bounds__(kThreads)
    dequantize(Index n, const std::uint8_t* blocks, float* w) {
  const int lane = threadIdx.x % kWarp;
  const bool vector = aligned_for_four(w, 0);
  for_warps(n, [&](Index i) {
    const float4 v = load_codes(blocks + i * kBlockBytes).weights();
    float* to = w + i * kBlock + 4 * lane;
    if (vector) {
      store_four(to, v);
    } else {
      to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
    }
  });
}

// Digit k of dense byte m is the code of a weight; digits run along rows of one width.
__device__ int dense_place(int m, int k) {
  if (m < 16) return m + 16 * k;
  if (m < 24) return 80 + m - 16 + 8 * k;
  return k < 4 ? 120 + m - 24 + 2 * k : -1;
}

// Blocks of kFrom bytes to blocks of kTo: change(from, byte) of each byte, by way of shared memory.
template <int kFrom, int kTo, class Change>
__device__ void repack(Index n, const std::uint8_t* from, std::uint8_t* to, const Change& change) {
  __shared__ std::uint8_t staged[kBlocksAtOnce * kFrom];
  for_blocks(ceil_div(n, kBlocksAtOnce), [&](Index group) {
    const Index first = group * kBlocksAtOnce;
    const int count = static_cast<int>(n - first < kBlocksAtOnce ? n - first : kBlocksAtOnce);
    __syncthreads();
    for (int i = threadIdx.x; i < count * kFrom; i += kThreads) staged[i] = from[first * kFrom + i];
    __syncthreads();
    for (int i = threadIdx.x; i < count * kTo; i += kThreads)
      to[first * kTo + i] = static_cast<std::uint8_t>(change(staged + i / kTo * kFrom, i % kTo));
  });
}

__global__ void __launch_bounds__(kThreads)
    pack_dense(Index n, const std::uint8_t* blocks, std::uint8_t* dense) {
  repack<kBlockBytes, kDenseBytes>(n, blocks, dense, [](const std::uint8_t* block, int byte) {
    if (byte >= 26) return static_cast<int>(block[byte - 26]);
    int number = 0;
    for (int k = 0; k < 5; ++k) {
      const int j = dense_place(byte, k);
      number = number * 3 + (j < 0 ? 0 : block[2 + j / 4] >> j % 4 * 2 & 3);
    }
    return (number * 256 + 242) / 243;
  });
}

__global__ void __launch_bounds__(kThreads)
    unpack_dense(Index n, const std::uint8_t* dense, std::uint8_t* blocks) {
  repack<kDenseBytes, kBlockBytes>(n, dense, blocks, [](const std::uint8_t* block, int byte) {
    if (byte < 2) return static_cast<int>(block[26 + byte]);
    int codes = 0;
    for (int i = 0; i < 4; ++i) {
      const int j = (byte - 2) * 4 + i;
      const int m = j < 80 ? j % 16 : j < 120 ? 16 + j % 8 : 24 + j % 2;
      int power = 1;  // of 3, by which the digit comes to the front
      for (int k = j < 80 ? j / 16 : j < 120 ? (j - 80) / 8 : (j - 120) / 2; k > 0; --k) power *= 3;
      codes |= (3 * (power * block[m] & 255) >> 8) << 2 * i;
    }
    return codes;
  });
}

// --- 5. the model ---

// A matrix among the blob's.
struct Matrix {
  Index rows, cols, first;  // first: its first weight in the blob's order
};

// q, k and v lie one after the other and have the same columns: they are one matrix; so are gate
// and up.
struct Layout {
  Index V, d, L, wide, narrow, ff, hd, untied;
  __host__ __device__ explicit Layout(const tt_config& c)
      : V(c.V),
        d(c.d),
        L(c.L),
        wide(Index{c.Hq} * c.hd),
        narrow(Index{c.Hkv} * c.hd),
        ff(c.ff),
        hd(c.hd),
        untied(1 - c.tied) {}
  __host__ __device__ Index qkv_rows() const { return wide + 2 * narrow; }
  __host__ __device__ Index layer() const { return (qkv_rows() + wide + 3 * ff) * d; }
  __host__ __device__ Index outer() const { return (1 + untied) * V * d; }
  __host__ __device__ Index matrices() const { return outer() + L * layer(); }
  __host__ __device__ Index layer_norms() const { return 2 * d + 2 * hd; }
  __host__ __device__ Index norms() const { return L * layer_norms() + d; }
  __host__ __device__ Index all() const { return matrices() + norms(); }
  __host__ __device__ Index block_bytes() const { return matrices() / kBlock * kBlockBytes; }

  __host__ __device__ Matrix head() const { return {V, d, untied * V * d}; }
  __host__ __device__ Matrix qkv(Index l) const { return {qkv_rows(), d, outer() + l * layer()}; }
  __host__ __device__ Matrix o(Index l) const { return {d, wide, qkv(l).first + qkv_rows() * d}; }
  __host__ __device__ Matrix gate_up(Index l) const { return {2 * ff, d, o(l).first + wide * d}; }
  __host__ __device__ Matrix down(Index l) const { return {d, ff, gate_up(l).first + 2 * ff * d}; }
  // Of the norms alone.
  __host__ __device__ Index attention_norm(Index l) const { return l * layer_norms(); }
  __host__ __device__ Index query_norm(Index l) const { return attention_norm(l) + d; }
  __host__ __device__ Index key_norm(Index l) const { return query_norm(l) + hd; }
  __host__ __device__ Index ff_norm(Index l) const { return key_norm(l) + hd; }
  __host__ __device__ Index final_norm() const { return L * layer_norms(); }
};

// Of a layer's forward pass, for n tokens, whose documents are one after the other.
struct Activations {
  float *qkv, *turned, *p, *a, *x2, *gate_up, *s;
  float *roots1, *roots_heads, *roots2;
};

struct Model {
  tt_config c;
  Layout at;
  Index documents, n_docs;  // of a pass; of all
  const std::uint16_t* docs;
  const std::uint8_t* blocks;
  const float *norms, *turns;  // turns: cosines and sines [T, hd / 2, 2]
  float *x, *activations, *logits;
  Index x_stride, layer_stride;  // 0 where no layer's values are kept
  // Of the backward pass.
  float *roots, *dx, *dh, *dqkv, *dturned, *da, *dp, *dgate_up;
  float* gradient;

  __host__ __device__ explicit Model(const tt_config& c) : c(c), at(c) {}

  __host__ __device__ Index tokens() const { return documents * c.T; }
  __host__ __device__ Index heads() const { return Index{c.Hq} + c.Hkv; }

  // The size of a layer's values if base is null.
  __host__ __device__ Activations layer(Index l, Index* size = nullptr) const {
    const Index n = tokens();
    Index used = l * layer_stride;
    const auto take = [&](Index count) {
      float* p = activations + used;
      used += ceil_div(count, 4) * 4;
      return p;
    };
    Activations v{};
    v.qkv = take(n * at.qkv_rows());
    v.turned = take(n * (at.wide + at.narrow));
    v.p = take(n * c.Hq * c.T);
    v.a = take(n * at.wide);
    v.x2 = take(n * at.d);
    v.gate_up = take(n * 2 * at.ff);
    v.s = take(n * at.ff);
    v.roots1 = take(n);
    v.roots_heads = take(n * heads());
    v.roots2 = take(n);
    if (size != nullptr) *size = used;
    return v;
  }
  __device__ float* input(Index l) const { return x + l * x_stride; }
  __device__ const std::uint8_t* weights(const Matrix& m) const {
    return blocks + m.first / kBlock * kBlockBytes;
  }
  // Of a pass whose documents are those from `first` on, round and round.
  __device__ int token(Index first, Index i) const {
    const Divided place(i, c.T);
    Index doc = first + place.quotient;
    while (doc >= n_docs) doc -= n_docs;
    return docs[doc * c.T + place.remainder];
  }
  __device__ float score_scale() const { return 1 / sqrtf(static_cast<float>(c.hd)); }
};

// A head of a document: where its rows of queries, keys and probabilities begin.
struct Head {
  Index row, query, key, p;  // row: of its first token
  __device__ Head(const Model& m, Index i)
      : row(i / m.c.Hq * m.c.T),
        query(i % m.c.Hq * m.c.hd),
        key(i % m.c.Hq / (m.c.Hq / m.c.Hkv) * m.c.hd),
        p(i * m.c.T * m.c.T) {}
};

// Tiles on or below the diagonal, row by row.
struct Triangle {
  Index m, n;
  __device__ explicit Triangle(Index i) {
    Index row = 0;
    while (i > row) i -= ++row;
    m = row * kRows, n = i * kRows;
  }
  __device__ static Index count(Index T) {
    const Index n = ceil_div(T, kRows);
    return n * (n + 1) / 2;
  }
};
__device__ Index least(Index a, Index b) { return a < b ? a : b; }

// --- 6. the forward pass, a phase a function; all blocks wait between phases ---

__device__ void embed(const Model& m, Index first) {
  const Index d = m.at.d, per_row = d / kBlock;
  for_warps(m.tokens() * per_row, [&](Index i) {
    const Index from = Index{m.token(first, i / per_row)} * per_row + i % per_row;
    const Codes c = load_codes(m.blocks + from * kBlockBytes);
    store_four(m.x + i * kBlock + threadIdx.x % kWarp * 4, c.weights());
  });
}

// roots, one a token, are kept where they are wanted: by the tiles of the first columns.
template <class Finish>
__device__ void normed_product(const Model& m, const float* x, const float* norm, const Matrix& w,
                               Index width, Index apart, float* roots, float* memory,
                               const Finish& finish) {
  const Index across = ceil_div(w.rows, kRows), n = m.tokens();
  for_blocks(ceil_div(n, kRows) * across, [&](Index i) {
    const Index row = i / across * kRows, col = i % across * width;
    product<kRows>(Normed(x + row * w.cols, w.cols, n - row, norm, m.c.eps),
                   TernaryAlong<kRows>(m.weights(w), w.cols, col, w.rows - col, apart), w.cols,
                   memory, [&](const Normed& a, int own, int r, const float* values) {
                     const float root = a.root(own);
                     if (roots != nullptr && col == 0 && threadIdx.x % kWarp == 0)
                       roots[row + r] = root;
                     finish(row + r, col, root, values);
                   });
  });
}

// out [n, rows] = w times the normed rows of x.
__device__ void project(const Model& m, const float* x, const float* norm, const Matrix& w,
                        float* out, float* roots, float* memory) {
  normed_product(m, x, norm, w, kRows, 0, roots, memory,
                 [&](Index row, Index col, float root, const float* values) {
                   columns<kRows>(w.rows - col,
                                  [&](int j) { out[row * w.rows + col + j] = values[j] * root; });
                 });
}

// Half of a tile's columns are gates, the others what they are multiplied with: both factors of an
// element are in one block.
__device__ void gate(const Model& m, const Activations& v, const float* norm, const Matrix& w,
                     float* memory) {
  constexpr int kHalf = kRows / 2;
  const Index ff = m.at.ff;
  normed_product(m, v.x2, norm, w, kHalf, ff - kHalf, v.roots2, memory,
                 [&](Index row, Index col, float root, const float* values) {
                   columns<kHalf>(kHalf, [&](int j) {
                     const float g = values[j] * root, u = values[kHalf + j] * root;
                     v.gate_up[row * 2 * ff + col + j] = g;
                     v.gate_up[row * 2 * ff + ff + col + j] = u;
                     v.s[row * ff + col + j] = g / (1 + __expf(-g)) * u;
                   });
                 });
}

// to [n, rows] = from + w times the rows of x.
__device__ void add_projected(const Model& m, const float* x, const Matrix& w, const float* from,
                              float* to, float* memory) {
  const Index across = ceil_div(w.rows, kRows), n = m.tokens();
  for_blocks(ceil_div(n, kRows) * across, [&](Index i) {
    const Index row = i / across * kRows, col = i % across * kRows;
    product<kRows>(Along<float, kRows>(x + row * w.cols, w.cols, n - row),
                   TernaryAlong<kRows>(m.weights(w), w.cols, col, w.rows - col), w.cols, memory,
                   [&](const auto&, int, int r, const float* values) {
                     columns<kRows>(w.rows - col, [&](int j) {
                       const Index at = (row + r) * w.rows + col + j;
                       to[at] = from[at] + values[j];
                     });
                   });
  });
}

// Norms and turns the queries and keys; a warp has a head of a token.
__device__ void turn(const Model& m, const Activations& v, Index l) {
  const Index hd = m.c.hd, half = hd / 2, heads = m.heads(), width = m.at.wide + m.at.narrow;
  for_warps(m.tokens() * heads, [&](Index i) {
    const Divided at_head(i, heads);
    const Index token = at_head.quotient, head = at_head.remainder;
    const float* x = v.qkv + token * m.at.qkv_rows() + head * hd;
    const float* w = m.norms + (head < m.c.Hq ? m.at.query_norm(l) : m.at.key_norm(l));
    float* to = v.turned + token * width + head * hd;
    const float* turns = m.turns + Divided(token, m.c.T).remainder * hd;
    float squares = 0;
    for (Index j = threadIdx.x % kWarp; j < hd; j += kWarp) squares += x[j] * x[j];
    const float root = 1 / sqrtf(warp_sum(squares) / static_cast<float>(hd) + m.c.eps);
    for (Index j = threadIdx.x % kWarp; j < half; j += kWarp) {
      const float a = x[j] * root * w[j], b = x[half + j] * root * w[half + j];
      const float cos = turns[2 * j], sin = turns[2 * j + 1];
      to[j] = a * cos - b * sin;
      to[half + j] = a * sin + b * cos;
    }
    if (threadIdx.x % kWarp == 0) v.roots_heads[i] = root;
  });
}

// p = scaled products of rows of a with rows of b, head by head, on and below the diagonal. a has
// its heads' columns at Head.query, b at Head.key.
__device__ void score(const Model& m, const float* a, Index a_stride, const float* b,
                      Index b_stride, float scale, float* p, float* memory) {
  const Index T = m.c.T, triangle = Triangle::count(T);
  for_blocks(m.documents * m.c.Hq * triangle, [&](Index i) {
    const Head head(m, i / triangle);
    const Triangle tile(i % triangle);
    const float* left = a + (head.row + tile.m) * a_stride + head.query;
    const float* right = b + (head.row + tile.n) * b_stride + head.key;
    product<kRows>(Along<float, kRows>(left, a_stride, T - tile.m),
                   Along<float, kRows>(right, b_stride, T - tile.n), m.c.hd, memory,
                   [&](const auto&, int, int r, const float* values) {
                     columns<kRows>(T - tile.n, [&](int j) {
                       p[head.p + (tile.m + r) * T + tile.n + j] = values[j] * scale;
                     });
                   });
  });
}

// What lies right of the diagonal within the tiles that are read: 0.
__device__ void clear_masked(const Model& m, float* row, Index t) {
  const Index end = least(m.c.T, (t / kRows + 1) * kRows);
  for (Index u = t + 1 + threadIdx.x % kWarp; u < end; u += kWarp) row[u] = 0;
}

__device__ void softmax(const Model& m, float* p) {
  const Index T = m.c.T;
  for_warps(m.documents * m.c.Hq * T, [&](Index i) {
    float* row = p + i * T;
    const Index t = Divided(i, T).remainder;
    float most = -INFINITY, sum = 0;
    for (Index u = threadIdx.x % kWarp; u <= t; u += kWarp) most = fmaxf(most, row[u]);
    most = warp_max(most);
    for (Index u = threadIdx.x % kWarp; u <= t; u += kWarp) {
      const float e = __expf(row[u] - most);
      row[u] = e;
      sum += e;
    }
    sum = 1 / warp_sum(sum);
    for (Index u = threadIdx.x % kWarp; u <= t; u += kWarp) row[u] *= sum;
    clear_masked(m, row, t);
  });
}

// to, at Head.query, = rows of p times columns of b, at Head.key.
__device__ void weigh(const Model& m, const float* p, const float* b, Index b_stride, float* to,
                      Index to_stride, float* memory) {
  const Index T = m.c.T, hd = m.c.hd, across = ceil_div(hd, kRows),
              tiles = ceil_div(T, kRows) * across;
  for_blocks(m.documents * m.c.Hq * tiles, [&](Index i) {
    const Head head(m, i / tiles);
    const Index row = i % tiles / across * kRows, col = i % tiles % across * kRows;
    product<kRows>(
        Along<float, kRows>(p + head.p + row * T, T, T - row),
        Across<float, kRows>(b + head.row * b_stride + head.key + col, b_stride, hd - col),
        least(T, row + kRows), memory,
        Store<kRows, float>{to + (head.row + row) * to_stride + head.query + col, to_stride,
                            hd - col});
  });
}

template <class Sync>
__device__ void forward(const Model& m, Index first, float* memory, const Sync& sync) {
  const Layout& at = m.at;
  embed(m, first);
  sync();
  for (Index l = 0; l < at.L; ++l) {
    const Activations v = m.layer(l);
    const float *x = m.input(l), *norms = m.norms;
    project(m, x, norms + at.attention_norm(l), at.qkv(l), v.qkv, v.roots1, memory);
    sync();
    turn(m, v, l);
    sync();
    score(m, v.turned, at.wide + at.narrow, v.turned + at.wide, at.wide + at.narrow,
          m.score_scale(), v.p, memory);
    sync();
    softmax(m, v.p);
    sync();
    weigh(m, v.p, v.qkv + at.wide + at.narrow, at.qkv_rows(), v.a, at.wide, memory);
    sync();
    add_projected(m, v.a, at.o(l), x, v.x2, memory);
    sync();
    gate(m, v, norms + at.ff_norm(l), at.gate_up(l), memory);
    sync();
    add_projected(m, v.s, at.down(l), v.x2, m.input(l + 1), memory);
    sync();
  }
  project(m, m.input(at.L), m.norms + at.final_norm(), at.head(), m.logits, m.roots, memory);
}

__global__ void __launch_bounds__(kThreads, 2) infer(const __grid_constant__ Model m, Index first) {
  extern __shared__ __align__(16) float memory[];
  forward(m, first, memory, [] { cooperative_groups::this_grid().sync(); });
}

// --- 7. the backward pass ---

// Logits become the gradients of the documents' mean loss.
__device__ void loss_gradient(const Model& m, Index first) {
  const Index V = m.c.V, T = m.c.T;
  const float share = 1 / (static_cast<float>(T - 1) * static_cast<float>(m.documents));
  for_warps(m.tokens(), [&](Index i) {
    float* row = m.logits + i * V;
    const Index lane = threadIdx.x % kWarp;
    if (i % T == T - 1) {  // predicts nothing
      for (Index v = lane; v < V; v += kWarp) row[v] = 0;
      return;
    }
    const int next = m.token(first, i + 1);
    float most = -INFINITY, sum = 0;
    for (Index v = lane; v < V; v += kWarp) most = fmaxf(most, row[v]);
    most = warp_max(most);
    for (Index v = lane; v < V; v += kWarp) sum += __expf(row[v] - most);
    sum = share / warp_sum(sum);
    for (Index v = lane; v < V; v += kWarp)
      row[v] = __expf(row[v] - most) * sum - (v == next ? share : 0.0f);
  });
}

// dx [n, cols] = dy w, tile by tile; finish(row, column, values) takes each row of a tile.
__device__ Index input_tiles(const Model& m, const Matrix& w) {
  return ceil_div(m.tokens(), kRows) * (w.cols / kRows);
}
template <class Finish>
__device__ void input_tile(const Model& m, Index i, const float* dy, const Matrix& w, float* memory,
                           const Finish& finish) {
  const Index across = w.cols / kRows, row = i / across * kRows, col = i % across * kRows;
  product<kRows>(
      Along<float, kRows>(dy + row * w.rows, w.rows, m.tokens() - row),
      TernaryAcross<kRows>(m.weights(w), w.cols, col), w.rows, memory,
      [&](const auto&, int, int r, const float* values) { finish(row + r, col, values); });
}

// A tile of the gradient of w, dy^T x; operand(column) is x from a column on.
__device__ Index weight_tiles(const Matrix& w) {
  return ceil_div(w.rows, kRows) * (w.cols / kRows);
}
template <class Operand>
__device__ void weight_tile(const Model& m, Index i, const float* dy, const Matrix& w,
                            float* memory, const Operand& operand) {
  const Index across = w.cols / kRows, row = i / across * kRows, col = i % across * kRows;
  product<kRows>(Across<float, kRows>(dy + row, w.rows, w.rows - row), operand(col), m.tokens(),
                 memory,
                 Store<kRows, float>{m.gradient + w.first + row * w.cols + col, w.cols, kRows});
}

// Both gradients of a layer whose inputs were `operand`, in one phase.
template <class Operand, class Finish>
__device__ void layer_gradients(const Model& m, const float* dy, const Matrix& w, float* memory,
                                const Operand& operand, const Finish& finish) {
  const Index inputs = input_tiles(m, w);
  for_blocks(inputs + weight_tiles(w), [&](Index i) {
    if (i < inputs) {
      input_tile(m, i, dy, w, memory, finish);
    } else {
      weight_tile(m, i - inputs, dy, w, memory, operand);
    }
  });
}

// Of inputs that were normed.
__device__ void normed_gradients(const Model& m, const float* dy, const Matrix& w, const float* x,
                                 const float* roots, const float* norm, float* memory) {
  layer_gradients(
      m, dy, w, memory, [&](Index col) { return NormedAcross(x + col, w.cols, roots, norm + col); },
      [&](Index row, Index col, const float* values) {
        columns<kRows>(kRows, [&](int j) { m.dh[row * w.cols + col + j] = values[j]; });
      });
}

// Of inputs as they were, x; dx is stored.
__device__ void plain_gradients(const Model& m, const float* dy, const Matrix& w, const float* x,
                                float* dx, float* memory) {
  layer_gradients(
      m, dy, w, memory,
      [&](Index col) { return Across<float, kRows>(x + col, w.cols, w.cols - col); },
      [&](Index row, Index col, const float* values) {
        columns<kRows>(kRows, [&](int j) { dx[row * w.cols + col + j] = values[j]; });
      });
}

// dh is the gradient of x's normed rows: dx that of x, added to or stored; and that of the norm's
// weights, a lane for each, over all tokens.
__device__ void norm_gradients(const Model& m, const float* x, const float* roots, Index norm,
                               bool add) {
  const Index d = m.at.d, n = m.tokens(), lane = threadIdx.x % kWarp;
  const float* w = m.norms + norm;
  for_warps(n + d / kWarp, [&](Index i) {
    if (i < n) {
      const float *dh = m.dh + i * d, *row = x + i * d, root = roots[i];
      float* dx = m.dx + i * d;
      float sum = 0;
      for (Index j = lane * 4; j < d; j += 4 * kWarp) {
        const float4 g = load_four(dh + j), v = load_four(row + j), u = load_four(w + j);
        sum += g.x * v.x * u.x + g.y * v.y * u.y + g.z * v.z * u.z + g.w * v.w * u.w;
      }
      const float back = warp_sum(sum) * root * root * root / static_cast<float>(d);
      for (Index j = lane * 4; j < d; j += 4 * kWarp) {
        const float4 g = load_four(dh + j), v = load_four(row + j), u = load_four(w + j);
        const float4 old = add ? load_four(dx + j) : float4{};
        store_four(dx + j,
                   {old.x + g.x * u.x * root - v.x * back, old.y + g.y * u.y * root - v.y * back,
                    old.z + g.z * u.z * root - v.z * back, old.w + g.w * u.w * root - v.w * back});
      }
    } else {
      const Index j = (i - n) * kWarp + lane;
      float sum = 0;
      for (Index t = 0; t < n; ++t) sum += m.dh[t * d + j] * x[t * d + j] * roots[t];
      m.gradient[m.at.matrices() + norm + j] = sum;
    }
  });
}

// Values' gradients, at Head.key of `to`: transposed p times columns of b at Head.query, of all
// query heads of a key head. p is 0 above the diagonal.
__device__ Index transposed_tiles(const Model& m) {
  return m.documents * m.c.Hkv * ceil_div(m.c.T, kRows) * ceil_div(m.c.hd, kRows);
}
__device__ void transposed_tile(const Model& m, Index i, const float* p, const float* b,
                                Index b_stride, float* to, Index to_stride, float* memory) {
  const Index T = m.c.T, hd = m.c.hd, across = ceil_div(hd, kRows);
  const Index tiles = ceil_div(T, kRows) * across, group = m.c.Hq / m.c.Hkv;
  const Index row = i % tiles / across * kRows, col = i % tiles % across * kRows;
  const Head first(m, i / tiles * group);
  Tile<kRows> tile;
  for (Index h = 0; h < group; ++h) {
    Across<float, kRows> left(p + first.p + h * T * T + row * T + row, T, T - row);
    Across<float, kRows> right(b + (first.row + row) * b_stride + first.query + h * hd + col,
                               b_stride, hd - col);
    tile.add(left, right, T - row, memory);
  }
  const Store<kRows, float> store{to + (first.row + row) * to_stride + first.key + col, to_stride,
                                  hd - col};
  tile.rows(static_cast<int>(least(kRows, T - row)), static_cast<int>(least(kRows, hd - col)),
            memory, [&](int own, int r, const float* values) { store(0, own, r, values); });
}

// dp, gradients of the probabilities, becomes that of the scaled products.
__device__ void softmax_gradient(const Model& m, const float* p, float* dp) {
  const Index T = m.c.T;
  const float scale = m.score_scale();
  for_warps(m.documents * m.c.Hq * T, [&](Index i) {
    const float* row = p + i * T;
    float* to = dp + i * T;
    const Index t = Divided(i, T).remainder;
    float sum = 0;
    for (Index u = threadIdx.x % kWarp; u <= t; u += kWarp) sum += row[u] * to[u];
    sum = warp_sum(sum);
    for (Index u = threadIdx.x % kWarp; u <= t; u += kWarp) to[u] = row[u] * (to[u] - sum) * scale;
    clear_masked(m, to, t);
  });
}

// Turns gradients back, in place, and takes them through the heads' norms.
__device__ void turn_gradient(const Model& m, const Activations& v, Index l) {
  const Index hd = m.c.hd, half = hd / 2, heads = m.heads(), width = m.at.wide + m.at.narrow;
  for_warps(m.tokens() * heads, [&](Index i) {
    const Divided at_head(i, heads);
    const Index token = at_head.quotient, head = at_head.remainder;
    const Index at = token * m.at.qkv_rows() + head * hd;
    const float *x = v.qkv + at, root = v.roots_heads[i];
    const float* w = m.norms + (head < m.c.Hq ? m.at.query_norm(l) : m.at.key_norm(l));
    float *g = m.dturned + token * width + head * hd, *to = m.dqkv + at;
    const float* turns = m.turns + Divided(token, m.c.T).remainder * hd;
    float sum = 0;
    for (Index j = threadIdx.x % kWarp; j < half; j += kWarp) {
      const float a = g[j], b = g[half + j], cos = turns[2 * j], sin = turns[2 * j + 1];
      const float da = a * cos + b * sin, db = b * cos - a * sin;
      g[j] = da;
      g[half + j] = db;
      sum += da * w[j] * x[j] + db * w[half + j] * x[half + j];
    }
    const float back = warp_sum(sum) * root * root * root / static_cast<float>(hd);
    for (Index j = threadIdx.x % kWarp; j < half; j += kWarp) {
      to[j] = g[j] * w[j] * root - x[j] * back;
      to[half + j] = g[half + j] * w[half + j] * root - x[half + j] * back;
    }
  });
}

// Of the weights of the heads' norms, a warp for 32 of them: lanes of queries, then of keys.
__device__ void head_norm_gradients(const Model& m, const Activations& v, Index l) {
  const Index hd = m.c.hd, heads = m.heads(), per_norm = ceil_div(hd, kWarp), n = m.tokens();
  for_warps(2 * per_norm, [&](Index i) {
    const bool keys = i >= per_norm;
    const Index j = i % per_norm * kWarp + threadIdx.x % kWarp;
    if (j >= hd) return;
    float sum = 0;
    for (Index t = 0; t < n; ++t) {
      for (Index h = keys ? m.c.Hq : 0; h < (keys ? heads : m.c.Hq); ++h) {
        sum += m.dturned[t * (m.at.wide + m.at.narrow) + h * hd + j] *
               v.qkv[t * m.at.qkv_rows() + h * hd + j] * v.roots_heads[t * heads + h];
      }
    }
    m.gradient[m.at.matrices() + (keys ? m.at.key_norm(l) : m.at.query_norm(l)) + j] = sum;
  });
}

template <class Sync>
__device__ __forceinline__ void backward(const Model& m, Index first, float* memory,
                                         const Sync& sync) {
  const Layout& at = m.at;
  const float* x = m.input(at.L);
  loss_gradient(m, first);
  sync();
  normed_gradients(m, m.logits, at.head(), x, m.roots, m.norms + at.final_norm(), memory);
  sync();
  norm_gradients(m, x, m.roots, at.final_norm(), false);
  sync();
  for (Index l = at.L - 1; l >= 0; --l) {
    const Activations v = m.layer(l);
    const Index ff = at.ff, turned = at.wide + at.narrow;
    // s = silu(g) u, whose gradients need no other element.
    layer_gradients(
        m, m.dx, at.down(l), memory,
        [&](Index col) { return Across<float, kRows>(v.s + col, ff, ff - col); },
        [&](Index row, Index col, const float* values) {
          columns<kRows>(kRows, [&](int j) {
            const Index to = row * 2 * ff + col + j;
            const float g = v.gate_up[to], u = v.gate_up[to + ff], ds = values[j];
            const float sigmoid = 1 / (1 + __expf(-g));
            m.dgate_up[to] = ds * u * sigmoid * (1 + g * (1 - sigmoid));
            m.dgate_up[to + ff] = ds * g * sigmoid;
          });
        });
    sync();
    normed_gradients(m, m.dgate_up, at.gate_up(l), v.x2, v.roots2, m.norms + at.ff_norm(l), memory);
    sync();
    norm_gradients(m, v.x2, v.roots2, at.ff_norm(l), true);
    sync();
    plain_gradients(m, m.dx, at.o(l), v.a, m.da, memory);
    sync();
    score(m, m.da, at.wide, v.qkv + turned, at.qkv_rows(), 1, m.dp, memory);
    for_blocks(transposed_tiles(m), [&](Index i) {
      transposed_tile(m, i, v.p, m.da, at.wide, m.dqkv + turned, at.qkv_rows(), memory);
    });
    sync();
    softmax_gradient(m, v.p, m.dp);
    sync();
    weigh(m, m.dp, v.turned + at.wide, turned, m.dturned, turned, memory);
    for_blocks(transposed_tiles(m), [&](Index i) {
      transposed_tile(m, i, m.dp, v.turned, turned, m.dturned + at.wide, turned, memory);
    });
    sync();
    turn_gradient(m, v, l);
    sync();
    normed_gradients(m, m.dqkv, at.qkv(l), m.input(l), v.roots1, m.norms + at.attention_norm(l),
                     memory);
    head_norm_gradients(m, v, l);
    sync();
    norm_gradients(m, m.input(l), v.roots1, at.attention_norm(l), true);
    sync();
  }
}

// --- 8. training ---

// Codes flip as the latent weights move by a good part of their scale, hence the rate.
constexpr float kRate = 2e-3f, kNormRate = 1e-2f, kBeta1 = 0.9f, kBeta2 = 0.98f, kClip = 1;
constexpr float kEmbeddingInit = 0.05f, kInit = 0.1f;
constexpr double kWarmUp = 0.05;
constexpr Index kBatch = 4;    // documents
constexpr double kPasses = 8;  // over few documents: more learn them by heart

struct Training {
  float *latent, *first, *second;  // weights and their moments
  std::uint8_t* blocks;            // what the latent weights round to
  double* squares;                 // of the gradients, a sum a block of threads
  double most_tokens, least_progress;
  Index first_step, steps;
  std::uint64_t seed;
  bool resumed;  // the latent weights and their moments are there
};

__device__ std::uint64_t scrambled(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Number i of a stream of standard normal ones: Box and Muller of two uniform numbers.
__device__ float normal(std::uint64_t seed, std::uint64_t i) {
  const std::uint64_t bits =
      scrambled(scrambled(seed + 0x9e3779b97f4a7c15ull) + i * 0x9e3779b97f4a7c15ull);
  const float u = static_cast<float>((bits >> 40) + 1) * 0x1p-24f;
  const float v = static_cast<float>(bits & 0xffffff) * 0x1p-24f;
  return sqrtf(-2 * __logf(u)) * __cosf(6.2831853f * v);
}

// A warp's block of latent weights, rounded to where it is computed with.
__device__ void round_block(const Training& t, Index block, const float4& w) {
  store_packed(quantize_block(w), t.blocks + block * kBlockBytes);
}

__global__ void __launch_bounds__(kThreads) begin(const __grid_constant__ Training t, Layout at) {
  const Index blocks = at.matrices() / kBlock, all = ceil_div(at.all(), kBlock);
  for_warps(all, [&](Index i) {
    const Index first = i * kBlock + threadIdx.x % kWarp * 4;
    if (t.resumed) {
      if (i < blocks) round_block(t, i, load_four(t.latent + first));
      return;
    }
    if (i < blocks) {
      const float sigma = first < at.V * at.d ? kEmbeddingInit : kInit;
      const auto draw = [&](int j) {
        return sigma * normal(t.seed, static_cast<std::uint64_t>(first + j));
      };
      const float4 w{draw(0), draw(1), draw(2), draw(3)};
      store_four(t.latent + first, w);
      round_block(t, i, w);
    }
    if (first >= at.all()) return;  // norms' sizes are multiples of four
    if (i >= blocks) store_four(t.latent + first, {1, 1, 1, 1});
    store_four(t.first + first, {});
    store_four(t.second + first, {});
  });
}

// Of an embedding whose token v was looked up: the sum of dx over its places, for four columns.
__device__ float4 lookup_gradient(const Model& m, Index first, Index v, Index column) {
  const Index n = m.tokens(), d = m.at.d, lane = threadIdx.x % kWarp;
  float4 sum{};
  for (Index from = 0; from < n; from += kWarp) {
    const bool here = from + lane < n && m.token(first, from + lane) == v;
    for (unsigned found = __ballot_sync(kAll, here); found != 0; found &= found - 1) {
      const float4 g = load_four(m.dx + (from + __ffs(static_cast<int>(found)) - 1) * d + column);
      sum.x += g.x, sum.y += g.y, sum.z += g.z, sum.w += g.w;
    }
  }
  return sum;
}

// Adds the lookups to the gradients of the embeddings, and up the squares of all.
__device__ void complete_gradients(const Model& m, const Training& t, Index first) {
  const Layout& at = m.at;
  float squares = 0;
  for_warps(ceil_div(at.all(), kBlock), [&](Index i) {
    const Index from = i * kBlock + threadIdx.x % kWarp * 4;
    if (from >= at.all()) return;
    float4 g{};
    if (i < at.V * at.d / kBlock) {
      g = lookup_gradient(m, first, from / at.d, from % at.d);
      if (at.untied == 0) {
        const float4 head = load_four(m.gradient + from);
        g.x += head.x, g.y += head.y, g.z += head.z, g.w += head.w;
      }
      store_four(m.gradient + from, g);
    } else {
      g = load_four(m.gradient + from);
    }
    squares += g.x * g.x + g.y * g.y + g.z * g.z + g.w * g.w;
  });
  const double sum = block_sum(squares);
  if (threadIdx.x == 0) t.squares[blockIdx.x] = sum;
}

__device__ void adam(const Model& m, const Training& t, Index step) {
  double squares = 0;
  for (unsigned b = threadIdx.x; b < gridDim.x; b += kThreads) squares += t.squares[b];
  const auto norm = static_cast<float>(sqrt(block_sum(squares)));
  const float clip = fminf(1, kClip / (norm + 1e-6f));
  const double by_tokens =
      static_cast<double>(kBatch * m.c.T) * static_cast<double>(step) / t.most_tokens;
  const double progress = fmax(by_tokens, t.least_progress);
  const auto rate = static_cast<float>(progress < kWarmUp ? progress / kWarmUp + 0.02
                                                          : (1 - progress) / (1 - kWarmUp));
  const auto n = static_cast<float>(step + 1);
  const float correct1 = 1 / (1 - exp2f(n * log2f(kBeta1)));
  const float correct2 = 1 / (1 - exp2f(n * log2f(kBeta2)));
  const Layout& at = m.at;
  const Index blocks = at.matrices() / kBlock;
  for_warps(ceil_div(at.all(), kBlock), [&](Index i) {
    const Index from = i * kBlock + threadIdx.x % kWarp * 4;
    if (from >= at.all()) return;
    const float scaled_rate = rate * correct1 * (i < blocks ? kRate : kNormRate);
    float4 w = load_four(t.latent + from), a = load_four(t.first + from),
           b = load_four(t.second + from);
    const float4 g = load_four(m.gradient + from);
    const auto update = [&](float& weight, float& mean, float& square, float gradient) {
      gradient *= clip;
      mean += (1 - kBeta1) * (gradient - mean);
      square += (1 - kBeta2) * (gradient * gradient - square);
      weight -= scaled_rate * mean / (sqrtf(square * correct2) + 1e-8f);
    };
    update(w.x, a.x, b.x, g.x);
    update(w.y, a.y, b.y, g.y);
    update(w.z, a.z, b.z, g.z);
    update(w.w, a.w, b.w, g.w);
    store_four(t.latent + from, w);
    store_four(t.first + from, a);
    store_four(t.second + from, b);
    if (i < blocks) round_block(t, i, w);
  });
}

__global__ void __launch_bounds__(kThreads, 2)
    train(const __grid_constant__ Model m, const __grid_constant__ Training t) {
  extern __shared__ __align__(16) float memory[];
  const auto sync = [] { cooperative_groups::this_grid().sync(); };
  for (Index step = t.first_step; step < t.first_step + t.steps; ++step) {
    const Index first = step * kBatch % m.n_docs;
    forward(m, first, memory, sync);
    sync();
    backward(m, first, memory, sync);
    complete_gradients(m, t, first);
    sync();
    adam(m, t, step);
    sync();
  }
}

// --- 9. generation, statistics, distillation ---

constexpr int kDecodeThreads = 256, kDecodeWarps = kDecodeThreads / kWarp;

struct Generation {
  Index documents, position, n_new, steps, work_floats;
  const std::uint16_t* tokens = nullptr;
  float *state = nullptr, *work = nullptr;
  std::uint16_t* generated = nullptr;
};

// A block has a document. Vectors lie in its scratch, small enough for the L1 cache.
class Decoder {
 public:
  __device__ Decoder(const Model& m, float* work, float* cache)
      : m_(m),
        cache_(cache),
        x_(work),
        h_(x_ + m.at.d),
        qkv_(h_ + m.at.d),
        a_(qkv_ + up_to(m.at.qkv_rows())),
        gate_up_(a_ + m.at.wide),
        s_(gate_up_ + 2 * m.at.ff),
        p_(s_ + m.at.ff),
        logits_(p_ + Index{m.c.Hq} * m.c.T) {}
  __host__ __device__ static Index up_to(Index n) { return ceil_div(n, 4) * 4; }
  __host__ static Index floats(const Layout& at, const tt_config& c) {
    return up_to(2 * at.d + up_to(at.qkv_rows()) + at.wide + 3 * at.ff + Index{c.Hq} * c.T + at.V);
  }

  // The token at `position`; afterwards x is what the head reads.
  __device__ void step(int token, Index position) const {
    const Layout& at = m_.at;
    const Index per_row = at.d / kBlock;
    for (Index i = warp(); i < per_row; i += kDecodeWarps) {
      const Codes c = load_codes(m_.blocks + (token * per_row + i) * kBlockBytes);
      store_four(x_ + i * kBlock + 4 * lane(), c.weights());
    }
    __syncthreads();
    for (Index l = 0; l < at.L; ++l) {
      float* keys = cache_ + l * 2 * m_.c.T * at.narrow;
      norm(at.attention_norm(l));
      multiply_rows(at.qkv(l), h_, [&](Index row, float v) { qkv_[row] = v; });
      turn(l, position, keys);
      attend(position + 1, keys);
      multiply_rows(at.o(l), a_, [&](Index row, float v) { x_[row] += v; });
      norm(at.ff_norm(l));
      multiply_rows(at.gate_up(l), h_, [&](Index row, float v) { gate_up_[row] = v; });
      for (Index i = threadIdx.x; i < at.ff; i += kDecodeThreads)
        s_[i] = gate_up_[i] / (1 + expf(-gate_up_[i])) * gate_up_[at.ff + i];
      __syncthreads();
      multiply_rows(at.down(l), s_, [&](Index row, float v) { x_[row] += v; });
    }
  }

  // The token with the largest logit, the first one among equals.
  __device__ int best() const {
    norm(m_.at.final_norm());
    multiply_rows(m_.at.head(), h_, [&](Index row, float v) { logits_[row] = v; });
    float most = -INFINITY;
    int token = INT_MAX;
    for (int v = static_cast<int>(threadIdx.x); v < m_.c.V; v += kDecodeThreads) {
      if (logits_[v] > most || token == INT_MAX) most = logits_[v], token = v;
    }
    const float largest = block_reduce(most, [](float a, float b) { return fmaxf(a, b); });
    if (most != largest) token = INT_MAX;
    return block_reduce(token, [](int a, int b) { return min(a, b); });
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / kWarp; }

  __device__ void norm(Index weights) const {
    const Index d = m_.at.d;
    double squares = 0;
    for (Index i = threadIdx.x; i < d; i += kDecodeThreads) squares += x_[i] * x_[i];
    const auto mean = static_cast<float>(block_sum(squares) / static_cast<double>(d));
    const float root = 1 / sqrtf(mean + m_.c.eps);
    for (Index i = threadIdx.x; i < d; i += kDecodeThreads)
      h_[i] = x_[i] * root * m_.norms[weights + i];
    __syncthreads();
  }

  // take(row, w's row times x), a row a warp at a time.
  template <class Take>
  __device__ void multiply_rows(const Matrix& w, const float* x, const Take& take) const {
    const Index per_row = w.cols / kBlock;
    const std::uint8_t* blocks = m_.weights(w);
    for (Index row = warp(); row < w.rows; row += kDecodeWarps) {
      float sum = 0;
      for (Index i = 0; i < per_row; ++i) {
        const float4 c = load_codes(blocks + (row * per_row + i) * kBlockBytes).weights();
        const float4 v = load_four(x + i * kBlock + 4 * lane());
        sum += c.x * v.x + c.y * v.y + c.z * v.z + c.w * v.w;
      }
      sum = warp_sum(sum);
      if (lane() == 0) take(row, sum);
    }
    __syncthreads();
  }

  // Norms and turns queries in place and keys into the cache, where the values go too.
  __device__ void turn(Index l, Index position, float* keys) const {
    const Layout& at = m_.at;
    const Index hd = m_.c.hd, half = hd / 2;
    float *key = keys + position * at.narrow, *value = key + m_.c.T * at.narrow;
    for (Index head = warp(); head < m_.heads(); head += kDecodeWarps) {
      const bool is_query = head < m_.c.Hq;
      const float* x = qkv_ + head * hd;
      float* to = is_query ? qkv_ + head * hd : key + (head - m_.c.Hq) * hd;
      const float* w = m_.norms + (is_query ? at.query_norm(l) : at.key_norm(l));
      float squares = 0;
      for (Index j = lane(); j < hd; j += kWarp) squares += x[j] * x[j];
      const float root = 1 / sqrtf(warp_sum(squares) / static_cast<float>(hd) + m_.c.eps);
      for (Index j = lane(); j < half; j += kWarp) {
        const float a = x[j] * root * w[j], b = x[half + j] * root * w[half + j];
        const float cos = m_.turns[position * hd + 2 * j],
                    sin = m_.turns[position * hd + 2 * j + 1];
        to[j] = a * cos - b * sin;
        to[half + j] = a * sin + b * cos;
      }
    }
    for (Index j = threadIdx.x; j < at.narrow; j += kDecodeThreads)
      value[j] = qkv_[at.wide + at.narrow + j];
    __syncthreads();
  }

  // A query head a warp: lanes are keys, then dimensions.
  __device__ void attend(Index n, const float* keys) const {
    const Index hd = m_.c.hd, narrow = m_.at.narrow, group = m_.c.Hq / m_.c.Hkv;
    const float* values = keys + m_.c.T * narrow;
    for (Index head = warp(); head < m_.c.Hq; head += kDecodeWarps) {
      const float* q = qkv_ + head * hd;
      const Index column = head / group * hd;
      float *p = p_ + head * m_.c.T, most = -INFINITY, sum = 0;
      for (Index u = lane(); u < n; u += kWarp) {
        float dot = 0;
        for (Index j = 0; j < hd; ++j) dot += q[j] * keys[u * narrow + column + j];
        p[u] = dot * m_.score_scale();
        most = fmaxf(most, p[u]);
      }
      most = warp_max(most);
      for (Index u = lane(); u < n; u += kWarp) {
        p[u] = expf(p[u] - most);
        sum += p[u];
      }
      sum = warp_sum(sum);
      __syncwarp();
      for (Index j = lane(); j < hd; j += kWarp) {
        float out = 0;
        for (Index u = 0; u < n; ++u) out += p[u] * values[u * narrow + column + j];
        a_[head * hd + j] = out / sum;
      }
    }
    __syncthreads();
  }

  const Model& m_;
  float *cache_, *x_, *h_, *qkv_, *a_, *gate_up_, *s_, *p_, *logits_;
};

__global__ void __launch_bounds__(kDecodeThreads)
    decode(const __grid_constant__ Model m, const __grid_constant__ Generation g) {
  for_blocks(g.documents, [&](Index doc) {
    const Decoder decoder(m, g.work + doc * g.work_floats,
                          g.state + doc * m.at.L * 2 * m.c.T * m.at.narrow);
    Index position = g.position;
    for (Index i = 0; i < g.n_new; ++i) decoder.step(g.tokens[doc * g.n_new + i], position++);
    for (Index i = 0; i < g.steps; ++i) {
      const int token = decoder.best();
      if (threadIdx.x == 0) g.generated[doc * g.steps + i] = static_cast<std::uint16_t>(token);
      decoder.step(token, position++);
    }
  });
}

// Matrix i of the blob, q, k, v, gate and up each on its own.
__device__ Matrix matrix_of(const Layout& at, Index i) {
  if (i <= at.untied) return {at.V, at.d, i * at.V * at.d};
  const Index l = (i - at.untied - 1) / 7, kind = (i - at.untied - 1) % 7;
  const Index q = at.qkv(l).first, gate = at.gate_up(l).first;
  if (kind == 0) return {at.wide, at.d, q};
  if (kind <= 2) return {at.narrow, at.d, q + (at.wide + (kind - 1) * at.narrow) * at.d};
  if (kind == 3) return at.o(l);
  if (kind <= 5) return {at.ff, at.d, gate + (kind - 4) * at.ff * at.d};
  return at.down(l);
}

// Four codes of weights; those of a scale 0 are zeros.
__device__ std::uint32_t signs(const std::uint8_t* block) {
  const Codes c = load_codes(block);
  return c.scale == 0 ? 0x55 : c.codes & 255;
}

constexpr Index kCountedRows = 16;  // by a warp

__device__ void add_count(std::int64_t* to, int n) {
  n = __reduce_add_sync(kAll, n);
  if (threadIdx.x % kWarp == 0 && n > 0)
    atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(n));
}

// Warps have some rows of a matrix each, or the columns of a block. The low bit of a code is set
// where the weight is 0, the high one where it is above.
__global__ void __launch_bounds__(kThreads)
    count(Layout at, Index matrices, const std::uint8_t* blob, const std::uint8_t* before,
          std::int64_t* counts) {
  constexpr std::uint32_t kLow = 0x55;
  for (Index matrix = blockIdx.y; matrix < matrices; matrix += gridDim.y) {
    const Matrix m = matrix_of(at, matrix);
    const Index per_row = m.cols / kBlock, row_tasks = ceil_div(m.rows, kCountedRows);
    const Index from = m.first / kBlock * kBlockBytes;
    std::int64_t* to = counts + matrix * 7;
    for_warps(row_tasks + per_row, [&](Index i) {
      if (i >= row_tasks) {
        std::uint32_t used = 0;
        for (Index row = 0; row < m.rows; ++row)
          used |= ~signs(blob + from + (row * per_row + i - row_tasks) * kBlockBytes) & kLow;
        return add_count(to + 4, 4 - __popc(used));
      }
      int below = 0, zero = 0, above = 0, zero_rows = 0, changed = 0, reversed = 0;
      for (Index row = i * kCountedRows; row < least(m.rows, (i + 1) * kCountedRows); ++row) {
        bool all_zero = true;
        for (Index b = 0; b < per_row; ++b) {
          const Index block = from + (row * per_row + b) * kBlockBytes;
          const std::uint32_t now = signs(blob + block);
          const std::uint32_t then = before != nullptr ? signs(before + block) : now;
          const std::uint32_t differ = now ^ then, high = now >> 1 & kLow, low = now & kLow;
          below += __popc(~(high | low) & kLow);
          zero += __popc(low);
          above += __popc(high);
          changed += __popc((differ | differ >> 1) & kLow);
          reversed += __popc(differ >> 1 & ~(now | then) & kLow);
          all_zero = all_zero && low == kLow;
        }
        zero_rows += __all_sync(kAll, all_zero) && threadIdx.x % kWarp == 0 ? 1 : 0;
      }
      add_count(to, below);
      add_count(to + 1, zero);
      add_count(to + 2, above);
      add_count(to + 3, zero_rows);
      add_count(to + 5, changed);
      add_count(to + 6, reversed);
    });
  }
}

// A row a block: maxima, sums, gradients.
__global__ void __launch_bounds__(kThreads)
    distill(Index M, Index V, float temperature, const float* teacher, const float* student,
            float* loss, float* gradient) {
  const auto most_of = [](float a, float b) { return fmaxf(a, b); };
  for_blocks(M, [&](Index row) {
    const float *t = teacher + row * V, *s = student + row * V;
    float most_t = -INFINITY, most_s = -INFINITY;
    for (Index v = threadIdx.x; v < V; v += kThreads) {
      most_t = fmaxf(most_t, t[v]);
      most_s = fmaxf(most_s, s[v]);
    }
    most_t = block_reduce(most_t, most_of);
    most_s = block_reduce(most_s, most_of);
    double sum_p = 0, sum_q = 0, cross = 0;
    for (Index v = threadIdx.x; v < V; v += kThreads) {
      const float p = expf((t[v] - most_t) / temperature);
      sum_p += p;
      sum_q += expf((s[v] - most_s) / temperature);
      cross += static_cast<double>(p) * ((t[v] - most_t) - (s[v] - most_s));
    }
    sum_p = block_sum(sum_p);
    sum_q = block_sum(sum_q);
    cross = block_sum(cross);
    const double tau = temperature;
    if (threadIdx.x == 0)
      loss[row] = static_cast<float>(tau * (tau * log(sum_q / sum_p) + cross / sum_p));
    const auto scale_p = static_cast<float>(tau / sum_p), scale_q = static_cast<float>(tau / sum_q);
    for (Index v = threadIdx.x; v < V; v += kThreads) {
      gradient[row * V + v] = expf((s[v] - most_s) / temperature) * scale_q -
                              expf((t[v] - most_t) / temperature) * scale_p;
    }
  });
}

// --- 10. the host ---

bool valid(const tt_config* c) {
  if (c == nullptr || c->size != sizeof(tt_config)) return false;
  for (const std::int32_t n : {c->V, c->d, c->L, c->Hq, c->Hkv, c->hd, c->ff}) {
    if (n <= 0) return false;
  }
  return c->d % kBlock == 0 && Index{c->Hq} * c->hd % kBlock == 0 && c->ff % kBlock == 0 &&
         c->V <= 65536 && c->T >= 2 && c->hd % 2 == 0 && c->Hq % c->Hkv == 0 &&
         (c->tied == 0 || c->tied == 1);
}

// Parts of one piece of scratch. Those of no piece tell how large it must be.
class Parts {
 public:
  explicit Parts(void* base) : base_(reinterpret_cast<std::uintptr_t>(base)) {}
  template <class T>
  T* take(Index n) {
    const std::uintptr_t at = base_ + used_;
    used_ += static_cast<std::size_t>(ceil_div(n * static_cast<Index>(sizeof(T)), 256) * 256);
    return reinterpret_cast<T*>(at);
  }
  std::size_t used() const { return used_; }

 private:
  std::uintptr_t base_;
  std::size_t used_ = 0;
};

// What comes from the host, in one copy: cosines and sines, then tokens.
class Inputs {
 public:
  Inputs(const tt_config& c, const std::uint16_t* tokens, Index n)
      : tokens_at_(static_cast<std::size_t>(Index{c.T} * c.hd) * 4),
        bytes_(tokens_at_ + static_cast<std::size_t>(n) * 2) {
    auto* turn = reinterpret_cast<float*>(bytes_.data());
    for (Index p = 0; p < c.T; ++p) {
      for (Index i = 0; i < c.hd; i += 2) {
        const double angle = static_cast<double>(p) *
                             std::pow(static_cast<double>(c.theta), -static_cast<double>(i) / c.hd);
        *turn++ = static_cast<float>(std::cos(angle));
        *turn++ = static_cast<float>(std::sin(angle));
      }
    }
    if (n > 0) std::memcpy(bytes_.data() + tokens_at_, tokens, static_cast<std::size_t>(n) * 2);
  }
  Index size() const { return static_cast<Index>(bytes_.size()); }
  // `to` has room for size().
  const std::uint16_t* upload(const assay_ctx* ctx, unsigned char* to, Model& m) const {
    cudaMemcpyAsync(to, bytes_.data(), bytes_.size(), cudaMemcpyHostToDevice, stream_of(ctx));
    m.turns = reinterpret_cast<const float*>(to);
    return reinterpret_cast<const std::uint16_t*>(to + tokens_at_);
  }

 private:
  std::size_t tokens_at_;
  std::vector<unsigned char> bytes_;
};

// Norms stand at any byte of a blob.
void copy_norms(const assay_ctx* ctx, const Layout& at, void* to, const void* from) {
  cudaMemcpyAsync(to, from, static_cast<std::size_t>(at.norms()) * 4, cudaMemcpyDeviceToDevice,
                  stream_of(ctx));
}

void take_activations(Model& m, Parts& parts, bool all_layers) {
  const Index n = m.tokens(), kept = all_layers ? m.at.L : 0;
  m.layer_stride = 0;
  Index size = 0;
  m.activations = nullptr;
  m.layer(0, &size);
  m.layer_stride = all_layers ? size : 0;
  m.activations = parts.take<float>(size * std::max<Index>(kept, 1));
  m.x_stride = all_layers ? n * m.at.d : 0;
  m.x = parts.take<float>(n * m.at.d * (kept + 1));
}

void take_gradients(Model& m, Parts& parts) {
  const Index n = m.tokens();
  m.logits = parts.take<float>(n * m.at.V);
  m.roots = parts.take<float>(n);
  m.dx = parts.take<float>(n * m.at.d);
  m.dh = parts.take<float>(n * m.at.d);
  m.dqkv = parts.take<float>(n * m.at.qkv_rows());
  m.dturned = parts.take<float>(n * (m.at.wide + m.at.narrow));
  m.da = parts.take<float>(n * m.at.wide);
  m.dp = parts.take<float>(n * m.c.Hq * m.c.T);
  m.dgate_up = parts.take<float>(n * 2 * m.at.ff);
  m.gradient = parts.take<float>(m.at.all());
}

// Blocks for the phase of most tiles, as far as all can be there at once.
int blocks_for(const void* kernel, const Model& m, bool gradients) {
  int resident = 0;
  if (!set_shared(kernel, kTileBytes) ||
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, kThreads, kTileBytes) !=
          cudaSuccess)
    return 0;
  const Index widest = std::max({m.at.V, m.at.qkv_rows(), 2 * m.at.ff}),
              across = ceil_div(widest, kRows), t = ceil_div(m.c.T, kRows);
  const Index rows = ceil_div(m.tokens(), kRows) + (gradients ? ceil_div(m.at.d, kRows) : 0);
  const Index tiles = std::max(rows * across, m.documents * m.c.Hq * t * (t + 1) / 2);
  return static_cast<int>(std::min<Index>(tiles, Index{resident} * multiprocessors()));
}

int launch_together(assay_ctx* ctx, const void* kernel, int blocks, void** arguments) {
  if (blocks == 0) return ASSAY_EINTERNAL;
  cudaLaunchCooperativeKernel(kernel, dim3(static_cast<unsigned>(blocks)), dim3(kThreads),
                              arguments, kTileBytes, stream_of(ctx));
  return launch_status();
}

class Trainer {
 public:
  Trainer(const tt_config& c, const std::uint16_t* docs, Index n_docs, const tt_budget& budget)
      : budget_(budget), inputs_(c, docs, n_docs * c.T), m_(c) {
    m_.documents = kBatch;
    m_.n_docs = n_docs;
    t_.seed = budget.seed;
    t_.most_tokens = std::min(static_cast<double>(budget.max_tokens),
                              kPasses * static_cast<double>(n_docs) * c.T);
    blocks_ = blocks_for(kernel(), m_, true);
  }

  std::size_t scratch_bytes() {
    Parts none(nullptr);
    place(none);
    return none.used();
  }

  // Begins a training, or goes on with one whose weights load() has brought.
  void begin(assay_ctx* ctx, const Scratch& scratch) {
    ctx_ = ctx;
    Parts parts(scratch.as<void>());
    place(parts);
    m_.docs = inputs_.upload(ctx, uploaded_, m_);
  }
  void start() {
    const Index blocks = ceil_div(ceil_div(m_.at.all(), kBlock), kWarps);
    const auto most = static_cast<Index>(multiprocessors()) * 16;
    ::begin<<<static_cast<unsigned>(std::min(blocks, most)), kThreads, 0, stream_of(ctx_)>>>(t_,
                                                                                             m_.at);
  }

  // Steps are taken while they need no more than `until` tokens and the clock allows; the host
  // looks at it between launches of some steps. Where `by_clock`, the rate falls with it too.
  int run(Index until, bool by_clock) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    const double seconds = 0.95 * budget_.seconds, tokens = static_cast<double>(kBatch * m_.c.T);
    const auto end = static_cast<Index>(
        std::floor(std::max(0.0, std::min(t_.most_tokens, static_cast<double>(until))) / tokens));
    double elapsed = 0, pace = 0;
    while (t_.first_step < end) {
      if (elapsed + 1.5 * pace > seconds) break;
      constexpr Index kMostSteps = 64;
      const double fit = pace > 0 ? 0.02 * seconds / pace : 1;
      t_.steps = std::min<Index>(end - t_.first_step,
                                 static_cast<Index>(std::clamp(fit, 1.0, double{kMostSteps})));
      // Early on the clock does not count: a stalled step would change a run that its tokens end.
      t_.least_progress = by_clock && elapsed > 0.25 * seconds ? elapsed / seconds : 0;
      void* arguments[] = {&m_, &t_};
      if (const int status = launch_together(ctx_, kernel(), blocks_, arguments);
          status != ASSAY_OK)
        return status;
      if (cudaStreamSynchronize(stream_of(ctx_)) != cudaSuccess) return ASSAY_EINTERNAL;
      t_.first_step += t_.steps;
      const double now = std::chrono::duration<double>(Clock::now() - start).count();
      pace = (now - elapsed) / static_cast<double>(t_.steps);
      elapsed = now;
    }
    return launch_status();
  }

  void write(std::uint8_t* blob) const {
    cudaMemcpyAsync(blob, t_.blocks, static_cast<std::size_t>(m_.at.block_bytes()),
                    cudaMemcpyDeviceToDevice, stream_of(ctx_));
    copy_norms(ctx_, m_.at, blob + m_.at.block_bytes(), t_.latent + m_.at.matrices());
  }

  // Everything that the next step depends on: the step's number, weights and moments.
  int save(std::uint8_t* state) const {
    cudaMemcpyAsync(state, &t_.first_step, sizeof t_.first_step, cudaMemcpyHostToDevice,
                    stream_of(ctx_));
    cudaMemcpyAsync(state + sizeof t_.first_step, t_.latent, weight_bytes(),
                    cudaMemcpyDeviceToDevice, stream_of(ctx_));
    return cudaStreamSynchronize(stream_of(ctx_)) == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
  }
  int load(const std::uint8_t* state) {
    cudaMemcpyAsync(&t_.first_step, state, sizeof t_.first_step, cudaMemcpyDeviceToHost,
                    stream_of(ctx_));
    cudaMemcpyAsync(t_.latent, state + sizeof t_.first_step, weight_bytes(),
                    cudaMemcpyDeviceToDevice, stream_of(ctx_));
    t_.resumed = true;
    return cudaStreamSynchronize(stream_of(ctx_)) == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL;
  }

 private:
  static const void* kernel() { return reinterpret_cast<const void*>(train); }
  std::size_t weight_bytes() const { return static_cast<std::size_t>(3 * m_.at.all()) * 4; }

  void place(Parts& parts) {
    uploaded_ = parts.take<unsigned char>(inputs_.size());
    t_.latent = parts.take<float>(3 * m_.at.all());
    t_.first = t_.latent + m_.at.all();
    t_.second = t_.first + m_.at.all();
    t_.blocks = parts.take<std::uint8_t>(m_.at.block_bytes());
    t_.squares = parts.take<double>(blocks_);
    take_activations(m_, parts, true);
    take_gradients(m_, parts);
    m_.blocks = t_.blocks;
    m_.norms = t_.latent + m_.at.matrices();
  }

  tt_budget budget_;
  Inputs inputs_;
  Model m_;
  Training t_{};
  int blocks_ = 0;
  assay_ctx* ctx_ = nullptr;
  unsigned char* uploaded_ = nullptr;
};

bool valid_training(const tt_config* c, const std::uint16_t* docs, Index n_docs,
                    const tt_budget* b) {
  return valid(c) && n_docs >= 0 && (n_docs == 0 || docs != nullptr) && b != nullptr;
}

// How many blocks of weights a matrix has, or -1 where it is none.
Index blocks_of(Index rows, Index cols, const void* a, const void* b) {
  if (rows < 0 || cols < 0 || cols % kBlock != 0) return -1;
  const Index n = rows * (cols / kBlock);
  return n > 0 && (a == nullptr || b == nullptr) ? -1 : n;
}

// A kernel over blocks of weights, of which a block of threads takes `at_once`.
template <class From, class To>
int convert(assay_ctx* ctx, void (*kernel)(Index, const From*, To*), Index n, Index at_once,
            const From* from, To* to) {
  if (n < 0) return ASSAY_EINVAL;
  if (n == 0) return ASSAY_OK;
  const Index grid = std::min<Index>(ceil_div(n, at_once), INT_MAX);
  kernel<<<static_cast<unsigned>(grid), kThreads, 0, stream_of(ctx)>>>(n, from, to);
  return launch_status();
}

}  // namespace

extern "C" {

std::size_t tt_blob_bytes(const tt_config* c) {
  if (!valid(c)) return 0;
  const Layout at(*c);
  return static_cast<std::size_t>(at.block_bytes() + 4 * at.norms());
}

int tt_train(assay_ctx* ctx, const tt_config* c, const std::uint16_t* docs, std::int64_t n_docs,
             const tt_budget* budget, void* blob) {
  if (!valid_training(c, docs, n_docs, budget) || blob == nullptr) return ASSAY_EINVAL;
  Trainer trainer(*c, docs, n_docs, *budget);
  const Scratch scratch(ctx, trainer.scratch_bytes());
  if (scratch.failed()) return ASSAY_ENOMEM;
  trainer.begin(ctx, scratch);
  trainer.start();
  const int status = trainer.run(INT64_MAX, true);
  if (status == ASSAY_OK) trainer.write(static_cast<std::uint8_t*>(blob));
  return status;
}

int tt_quantize(assay_ctx* ctx, std::int64_t rows, std::int64_t cols, const float* w,
                std::uint8_t* blocks) {
  return convert(ctx, quantize, blocks_of(rows, cols, w, blocks), kBlocksAtOnce, w, blocks);
}

int tt_dequantize(assay_ctx* ctx, std::int64_t rows, std::int64_t cols, const std::uint8_t* blocks,
                  float* w) {
  return convert(ctx, dequantize, blocks_of(rows, cols, blocks, w), kWarps, blocks, w);
}

int tt_linear(assay_ctx* ctx, std::int64_t M, std::int64_t rows, std::int64_t cols, const float* x,
              const std::uint8_t* blocks, const float* dy, float* y, float* dx, float* dw_latent) {
  return run_linear<float>(ctx, {M, rows, cols, x, dy, blocks, y, dx, dw_latent});
}

int tt_linear_bf16(assay_ctx* ctx, std::int64_t M, std::int64_t rows, std::int64_t cols,
                   const std::uint16_t* x, const std::uint8_t* blocks, const std::uint16_t* dy,
                   std::uint16_t* y, std::uint16_t* dx, float* dw_latent) {
  using T = __nv_bfloat16;
  return run_linear<T>(
      ctx, {M, rows, cols, reinterpret_cast<const T*>(x), reinterpret_cast<const T*>(dy), blocks,
            reinterpret_cast<T*>(y), reinterpret_cast<T*>(dx), dw_latent});
}

int tt_logits(assay_ctx* ctx, const tt_config* c, const void* blob, const std::uint16_t* docs,
              std::int64_t n_docs, float* logits) {
  if (!valid(c) || n_docs < 0 || blob == nullptr ||
      (n_docs > 0 && (docs == nullptr || logits == nullptr)))
    return ASSAY_EINVAL;
  if (n_docs == 0) return ASSAY_OK;
  constexpr Index kTokensAtOnce = 4096;
  const Inputs inputs(*c, docs, n_docs * c->T);
  Model m(*c);
  m.n_docs = n_docs;
  m.documents = std::clamp<Index>(kTokensAtOnce / c->T, 1, n_docs);
  m.roots = nullptr;
  unsigned char* uploaded = nullptr;
  float* norms = nullptr;
  const auto place = [&](Parts& parts) {
    uploaded = parts.take<unsigned char>(inputs.size());
    norms = parts.take<float>(m.at.norms());
    take_activations(m, parts, false);
  };
  Parts none(nullptr);
  place(none);
  const Scratch scratch(ctx, none.used());
  if (scratch.failed()) return ASSAY_ENOMEM;
  Parts parts(scratch.as<void>());
  place(parts);
  m.docs = inputs.upload(ctx, uploaded, m);
  m.blocks = static_cast<const std::uint8_t*>(blob);
  m.norms = norms;
  copy_norms(ctx, m.at, norms, m.blocks + m.at.block_bytes());
  const auto* kernel = reinterpret_cast<const void*>(infer);
  const int blocks = blocks_for(kernel, m, false);
  for (Index first = 0; first < n_docs; first += m.documents) {
    m.documents = std::min(m.documents, n_docs - first);
    m.logits = logits + first * c->T * c->V;
    void* arguments[] = {&m, &first};
    const int status = launch_together(ctx, kernel, blocks, arguments);
    if (status != ASSAY_OK) return status;
  }
  return ASSAY_OK;
}

int tt_pack_dense(assay_ctx* ctx, std::int64_t rows, std::int64_t cols, const std::uint8_t* blocks,
                  std::uint8_t* dense) {
  return convert(ctx, pack_dense, blocks_of(rows, cols, blocks, dense), kBlocksAtOnce, blocks,
                 dense);
}

int tt_unpack_dense(assay_ctx* ctx, std::int64_t rows, std::int64_t cols, const std::uint8_t* dense,
                    std::uint8_t* blocks) {
  return convert(ctx, unpack_dense, blocks_of(rows, cols, dense, blocks), kBlocksAtOnce, dense,
                 blocks);
}

int tt_generate(assay_ctx* ctx, const tt_config* c, const void* blob, const tt_generation* g,
                const std::uint16_t* tokens, float* state, std::uint16_t* generated) {
  if (!valid(c) || blob == nullptr || g == nullptr || g->size != sizeof(tt_generation))
    return ASSAY_EINVAL;
  if (g->n_docs < 0 || g->position < 0 || g->position > c->T || g->n_new < 1 ||
      g->n_new > c->T - g->position || g->steps < 0 || g->steps > c->T - g->position - g->n_new)
    return ASSAY_EINVAL;
  if (g->n_docs > 0 &&
      (tokens == nullptr || state == nullptr || (g->steps > 0 && generated == nullptr)))
    return ASSAY_EINVAL;
  if (g->n_docs == 0) return ASSAY_OK;
  const Inputs inputs(*c, tokens, g->n_docs * g->n_new);
  Model m(*c);
  Generation call{g->n_docs, g->position, g->n_new, g->steps, Decoder::floats(m.at, *c)};
  unsigned char* uploaded = nullptr;
  float* norms = nullptr;
  const auto place = [&](Parts& parts) {
    uploaded = parts.take<unsigned char>(inputs.size());
    norms = parts.take<float>(m.at.norms());
    call.work = parts.take<float>(call.documents * call.work_floats);
    call.generated = parts.take<std::uint16_t>(call.documents * call.steps);
  };
  Parts none(nullptr);
  place(none);
  const Scratch scratch(ctx, none.used());
  if (scratch.failed()) return ASSAY_ENOMEM;
  Parts parts(scratch.as<void>());
  place(parts);
  call.tokens = inputs.upload(ctx, uploaded, m);
  call.state = state;
  m.blocks = static_cast<const std::uint8_t*>(blob);
  m.norms = norms;
  copy_norms(ctx, m.at, norms, m.blocks + m.at.block_bytes());
  decode<<<static_cast<unsigned>(std::min<Index>(call.documents, INT_MAX)), kDecodeThreads, 0,
           stream_of(ctx)>>>(m, call);
  if (call.steps > 0) {
    cudaMemcpyAsync(generated, call.generated,
                    static_cast<std::size_t>(call.documents * call.steps) * 2,
                    cudaMemcpyDeviceToHost, stream_of(ctx));
    cudaStreamSynchronize(stream_of(ctx));
  }
  return launch_status();
}

int tt_train_part(assay_ctx* ctx, const tt_config* c, const std::uint16_t* docs,
                  std::int64_t n_docs, const tt_budget* budget, std::int32_t resume,
                  std::int64_t until, void* state, void* blob) {
  if (!valid_training(c, docs, n_docs, budget) || state == nullptr ||
      (resume != 0 && resume != 1) || until < 0)
    return ASSAY_EINVAL;
  Trainer trainer(*c, docs, n_docs, *budget);
  const Scratch scratch(ctx, trainer.scratch_bytes());
  if (scratch.failed()) return ASSAY_ENOMEM;
  trainer.begin(ctx, scratch);
  int status = resume == 1 ? trainer.load(static_cast<const std::uint8_t*>(state)) : ASSAY_OK;
  trainer.start();
  if (status == ASSAY_OK) status = trainer.run(until, false);
  if (status == ASSAY_OK) status = trainer.save(static_cast<std::uint8_t*>(state));
  if (status == ASSAY_OK && blob != nullptr) trainer.write(static_cast<std::uint8_t*>(blob));
  return status;
}

int tt_blob_statistics(assay_ctx* ctx, const tt_config* c, const void* blob, const void* before,
                       std::int64_t* counts) {
  if (!valid(c) || blob == nullptr || counts == nullptr) return ASSAY_EINVAL;
  const Layout at(*c);
  const Index matrices = 1 + at.untied + 7 * at.L;
  cudaMemsetAsync(counts, 0, static_cast<std::size_t>(matrices * 7) * 8, stream_of(ctx));
  const Index rows = std::max({at.V, at.wide, at.narrow, at.ff, at.d});
  const Index tasks = ceil_div(ceil_div(rows, kCountedRows) + at.ff / kBlock, kWarps);
  const dim3 grid(static_cast<unsigned>(std::min<Index>(tasks, 1024)),
                  static_cast<unsigned>(std::min<Index>(matrices, 65535)));
  count<<<grid, kThreads, 0, stream_of(ctx)>>>(at, matrices, static_cast<const std::uint8_t*>(blob),
                                               static_cast<const std::uint8_t*>(before), counts);
  return launch_status();
}

int tt_distill_loss(assay_ctx* ctx, std::int64_t M, std::int64_t V, float temperature,
                    const float* teacher, const float* student, float* loss, float* gradient) {
  if (M < 0 || V < 0 || !(temperature > 0) || std::isinf(temperature)) return ASSAY_EINVAL;
  if ((M > 0 && loss == nullptr) ||
      (M > 0 && V > 0 && (teacher == nullptr || student == nullptr || gradient == nullptr)))
    return ASSAY_EINVAL;
  if (M == 0) return ASSAY_OK;
  if (V == 0) {
    cudaMemsetAsync(loss, 0, static_cast<std::size_t>(M) * 4, stream_of(ctx));
  } else {
    distill<<<static_cast<unsigned>(std::min<Index>(M, INT_MAX)), kThreads, 0, stream_of(ctx)>>>(
        M, V, temperature, teacher, student, loss, gradient);
  }
  return launch_status();
}

}  // extern "C"
