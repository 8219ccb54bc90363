// Sample entrant of assay, not a model's answer: ternary training on tensor cores, in CUDA. The
// model is a blob at all times: matrices stay packed, products unpack the tiles that they read, and
// Adam packs what it has moved. A layer's products share one launch. fp32 is the sum of two numbers
// of tf32, a ternary weight is one: two products for outputs and gradients of inputs, three for
// gradients of weights. Training makes do with one, of numbers rounded to tf32. Attention passes
// over tiles of keys, and back over what each tile sees, without stored probabilities. All sums
// have an order of their own, so one seed gives one blob. The host only launches; it waits for the
// device where it looks at the clock. Generation passes a token at a time through the layers, with
// keys and values in the state. No interrupted training.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "abi.h"

namespace {

using Size = std::int64_t;
using Byte = std::uint8_t;

constexpr int kScaled = 128, kPacked = 34, kDense = 28;  // weights and bytes of a block
constexpr int kThreads = 128;                            // of most kernels
constexpr unsigned kAll = 0xffffffff;                    // lanes of a warp

__host__ __device__ constexpr Size parts(Size n, Size part) { return (n + part - 1) / part; }

__device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
__device__ Size warp_of_grid() { return (Size{blockIdx.x} * blockDim.x + threadIdx.x) / 32; }

template <class Op, class T>
__device__ T reduce(T x, Op op) {
  for (int mask = 16; mask > 0; mask /= 2) x = op(x, __shfl_xor_sync(kAll, x, mask));
  return x;
}
template <class Number>
__device__ Number total(Number x) {
  return reduce(x, [](Number a, Number b) { return a + b; });
}
__device__ float largest(float x) {
  return reduce(x, [](float a, float b) { return fmaxf(a, b); });
}

// --- blocks of weights ---

struct alignas(16) Four {
  float at[4];
};

__device__ float scale_of(unsigned bits) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

// A code is the low end of the mantissa of 2^23, which is a unit apart from the next float.
__device__ float weight_of(unsigned codes, int i, float scale) {
  return (__uint_as_float(0x4b000000u | (codes >> 2 * i & 3)) - 8388609.0f) * scale;
}

// A warp packs a block, of which a lane has four weights.
__device__ void pack(const Four& w, Byte* block) {
  double sum = 0;
  for (const float x : w.at) sum += fabs(double{x});
  const __half scale = __double2half(fmin(total(sum) / kScaled, 65504.0));
  const float limit = __half2float(scale) / 2;
  unsigned codes = 0;
  for (int i = 0; i < 4; ++i) {
    const unsigned code = limit > 0 ? 1 + (w.at[i] > limit) - (w.at[i] < -limit) : 1;
    codes |= code << 2 * i;
  }
  block[2 + lane()] = static_cast<Byte>(codes);
  if (lane() < 2) block[lane()] = static_cast<Byte>(__half_as_ushort(scale) >> 8 * lane());
}

__global__ void quantize(Size blocks, const float* w, Byte* to) {
  const Size b = warp_of_grid();
  if (b >= blocks) return;
  Four mine;
  for (int i = 0; i < 4; ++i) mine.at[i] = w[b * kScaled + 4 * lane() + i];
  pack(mine, to + b * kPacked);
}

__global__ void dequantize(Size blocks, const Byte* from, float* w) {
  const Size b = warp_of_grid();
  if (b >= blocks) return;
  from += b * kPacked;
  const float scale = scale_of(from[0] | from[1] << 8);
  for (int j = lane(); j < kScaled; j += 32)
    w[b * kScaled + j] = weight_of(from[2 + j / 4], j % 4, scale);
}

// Which weight the n-th code of a dense byte is of; kScaled or more for the one that is none.
__device__ int dense_weight(int byte, int n) {
  if (byte < 16) return byte + 16 * n;
  if (byte < 24) return 64 + byte + 8 * n;
  return n < 4 ? 96 + byte + 2 * n : kScaled;
}

// A warp a block, a lane a byte.
__global__ void to_dense(Size blocks, const Byte* from, Byte* to) {
  const Size b = warp_of_grid();
  if (b >= blocks || lane() >= kDense) return;
  from += b * kPacked;
  if (lane() >= 26) {
    to[b * kDense + lane()] = from[lane() - 26];
    return;
  }
  unsigned number = 0;
  for (int n = 0; n < 5; ++n) {
    const int j = dense_weight(lane(), n);
    number = 3 * number + (j < kScaled ? from[2 + j / 4] >> j % 4 * 2 & 3 : 0);
  }
  to[b * kDense + lane()] = static_cast<Byte>((256 * number + 242) / 243);
}

__device__ unsigned digit(unsigned byte, int n) {
  for (; n > 0; --n) byte = byte * 3 % 256;
  return byte * 3 / 256;
}

__global__ void from_dense(Size blocks, const Byte* from, Byte* to) {
  const Size b = warp_of_grid();
  if (b >= blocks) return;
  from += b * kDense;
  to += b * kPacked;
  unsigned codes = 0;
  for (int i = 0; i < 4; ++i) {
    const int j = 4 * lane() + i;
    const unsigned code = j < 80    ? digit(from[j % 16], j / 16)
                          : j < 120 ? digit(from[16 + j % 8], (j - 80) / 8)
                                    : digit(from[24 + j % 2], (j - 120) / 2);
    codes |= code << 2 * i;
  }
  to[2 + lane()] = static_cast<Byte>(codes);
  if (lane() < 2) to[lane()] = from[26 + lane()];
}

// --- tiles in shared memory ---

// Rows of memory, `step` elements apart. quads: four elements can be read at once everywhere.
template <class Element>
struct Matrix {
  const Element* data;
  Size rows, cols, step;
  bool quads;

  __host__ __device__ Matrix(const Element* at, Size r, Size c, Size s)
      : data(at),
        rows(r),
        cols(c),
        step(s),
        quads(c % 4 == 0 && s % 4 == 0 &&
              reinterpret_cast<std::uintptr_t>(at) % (4 * sizeof(Element)) == 0) {}
};

__device__ void copy_quad(float* to, const float* from, bool exists) {
  const auto target = static_cast<unsigned>(__cvta_generic_to_shared(to));
  const int bytes = exists ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(from), "r"(bytes)
               : "memory");
}
__device__ void copy_quad(float* to, const __nv_bfloat16* from, bool exists) {
  uint2 bits = {0, 0};
  if (exists) bits = *reinterpret_cast<const uint2*>(from);
  *reinterpret_cast<float4*>(to) =
      make_float4(__uint_as_float(bits.x << 16), __uint_as_float(bits.x & 0xffff0000),
                  __uint_as_float(bits.y << 16), __uint_as_float(bits.y & 0xffff0000));
}
// For the tiles that all threads of the block have staged.
__device__ void wait_for_tiles() {
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncthreads();
}

// kR rows by kC columns of m from (r0, c0) on; 0 where m has ended.
template <int kN, int kR, int kC, int kPitch, class T>
__device__ void stage(float* tile, const Matrix<T>& m, Size r0, Size c0) {
  constexpr int kAcross = kC / 4, kAtOnce = kN / kAcross;
  const int c = static_cast<int>(threadIdx.x) % kAcross * 4;
  int r = static_cast<int>(threadIdx.x) / kAcross;
  const T* from = m.data + (r0 + r) * m.step + c0 + c;
  const Size jump = kAtOnce * m.step, rows = m.rows - r0, cols = m.cols - c0 - c;
#pragma unroll
  for (; r < kR; r += kAtOnce, from += jump) {
    float* to = tile + r * kPitch + c;
    if (m.quads) {
      const bool exists = r < rows && cols > 0;
      copy_quad(to, exists ? from : m.data, exists);
    } else {
      for (int e = 0; e < 4; ++e) to[e] = r < rows && e < cols ? static_cast<float>(from[e]) : 0.0f;
    }
  }
}

struct Codes {
  const Byte* blocks;
  Size rows, cols;
  bool pairs;  // bytes can be read two at a time

  __host__ __device__ Codes(const Byte* at, Size r, Size c)
      : blocks(at), rows(r), cols(c), pairs(reinterpret_cast<std::uintptr_t>(at) % 2 == 0) {}

  __device__ unsigned two_bytes(const Byte* at) const {
    return pairs ? *reinterpret_cast<const std::uint16_t*>(at) : at[0] | unsigned{at[1]} << 8;
  }
};

// The same of packed weights. kC divides a block, so no column is missing.
template <int kN, int kR, int kC, int kPitch>
__device__ void stage(float* tile, const Codes& w, Size r0, Size c0) {
  constexpr int kAcross = kC / 8, kAtOnce = kN / kAcross;
  const int c = static_cast<int>(threadIdx.x) % kAcross * 8;
  int r = static_cast<int>(threadIdx.x) / kAcross;
  const Size row_bytes = w.cols / kScaled * kPacked;
  const Byte* block = w.blocks + (r0 + r) * row_bytes + c0 / kScaled * kPacked;
  const int place = 2 + static_cast<int>(c0 % kScaled + c) / 4;
#pragma unroll
  for (; r < kR; r += kAtOnce, block += kAtOnce * row_bytes) {
    float4* to = reinterpret_cast<float4*>(tile + r * kPitch + c);
    unsigned codes = 0;
    float s = 0;
    if (r0 + r < w.rows) {
      s = scale_of(w.two_bytes(block));
      codes = w.two_bytes(block + place);
    }
    to[0] = make_float4(weight_of(codes, 0, s), weight_of(codes, 1, s), weight_of(codes, 2, s),
                        weight_of(codes, 3, s));
    to[1] = make_float4(weight_of(codes, 4, s), weight_of(codes, 5, s), weight_of(codes, 6, s),
                        weight_of(codes, 7, s));
  }
}

// --- tensor cores ---

// How a tile lies: depth side by side in a row, or a row for each depth.
enum class Lie { along, across };

__device__ unsigned bits_of(float x) { return __float_as_uint(x); }
__device__ unsigned rest_of(float x, unsigned high) {
  return __float_as_uint(x - __uint_as_float(high));
}

// What tensor cores get of an fp32 number: itself, where it is one of tf32; the nearest of tf32,
// which is good enough to learn from; or that and the rest.
enum class Read { exact, rounded, split };

template <Read kRead>
struct Tf32 {
  unsigned high, low;
  __device__ explicit Tf32(float x) : high(bits_of(x)), low(0) {
    if (kRead == Read::exact) return;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(high) : "f"(x));
    if (kRead == Read::split) low = rest_of(x, high);
  }
};

__device__ void mma(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A factor as tiles hold it. The order of depths is free if both factors have the same: lane
// 4 g + t takes the depths 2 t and 2 t + 1 of each eight, neighbours in memory.
template <Lie kLie, int kPitch, Read kRead>
struct Factor {
  const float* tile;

  // Line i of the tile, that is row of the left factor or column of the right one.
  __device__ float2 pair(int i, int depth) const {
    const int k = depth + 2 * (lane() % 4);
    if constexpr (kLie == Lie::along) {
      return *reinterpret_cast<const float2*>(tile + i * kPitch + k);
    } else {
      return {tile[k * kPitch + i], tile[(k + 1) * kPitch + i]};
    }
  }
};

// c += 16 rows of a, from `row` on, times 8 kColumns columns of b, of which the first `used` tiles
// of 8 count; of the depths from `from` to `to`. Lane 4 g + t has in c[n] columns 8 n + 2 t and the
// next, of rows g and g + 8.
template <int kColumns, Lie kA, int kPa, Read kReadA, Lie kB, int kPb, Read kReadB>
__device__ void multiply_run(float (&c)[kColumns][4], const Factor<kA, kPa, kReadA>& a, int row,
                             const Factor<kB, kPb, kReadB>& b, int from, int to, int used) {
  const int g = lane() / 4;
#pragma unroll 2
  for (int k = from; k < to; k += 8) {
    const float2 upper = a.pair(row + g, k), lower = a.pair(row + g + 8, k);
    const Tf32<kReadA> x[4] = {Tf32<kReadA>(upper.x), Tf32<kReadA>(lower.x), Tf32<kReadA>(upper.y),
                               Tf32<kReadA>(lower.y)};
    const unsigned high[4] = {x[0].high, x[1].high, x[2].high, x[3].high};
    const unsigned low[4] = {x[0].low, x[1].low, x[2].low, x[3].low};
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
      if (n >= used) break;
      const float2 pair = b.pair(8 * n + g, k);
      const Tf32<kReadB> first(pair.x), second(pair.y);
      if constexpr (kReadA == Read::split) mma(c[n], low, first.high, second.high);
      if constexpr (kReadB == Read::split) mma(c[n], high, first.low, second.low);
      mma(c[n], high, first.high, second.high);
    }
  }
}

// The same from 0 to `depth`. The tensor core truncates its sums at each step, always downwards, so
// they are short, and added up in fp32.
template <int kColumns, Lie kA, int kPa, Read kReadA, Lie kB, int kPb, Read kReadB>
__device__ void multiply(float (&c)[kColumns][4], const Factor<kA, kPa, kReadA>& a, int row,
                         const Factor<kB, kPb, kReadB>& b, int depth, int used = kColumns) {
  constexpr int kRun = 32;
#pragma unroll 1
  for (int k = 0; k < depth; k += kRun) {
    float part[kColumns][4] = {};
    multiply_run(part, a, row, b, k, min(k + kRun, depth), used);
#pragma unroll
    for (int n = 0; n < kColumns; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) c[n][i] += part[n][i];
    }
  }
}

// --- linear layers ---

constexpr int kRows = 64, kDepth = 64;  // of a tile; a warp has 16 of the rows

template <Lie kLie, int kLines>
constexpr int kPitchOf = kLie == Lie::along ? kDepth + 8 : kLines + 4;

__device__ void store_pair(float* to, float x, float y, bool both, bool aligned) {
  if (aligned && both) {
    *reinterpret_cast<float2*>(to) = make_float2(x, y);
    return;
  }
  to[0] = x;
  if (both) to[1] = y;
}
__device__ void store_pair(__nv_bfloat16* to, float x, float y, bool both, bool aligned) {
  if (aligned && both) {
    *reinterpret_cast<__nv_bfloat162*>(to) = __floats2bfloat162_rn(x, y);
    return;
  }
  to[0] = __float2bfloat16(x);
  if (both) to[1] = __float2bfloat16(y);
}

// Where results go, perhaps on top of others.
template <class Element>
struct Target {
  Element* data;
  Size rows, cols;
  const float* add;
};

// A tile of the product of a and b, kWide columns from `left` on.
template <int kWide, Lie kA, Read kReadA, Lie kB, Read kReadB, class A, class B, class T>
__device__ void product_tile(const A& a, const B& b, Size depth, const Target<T>& to, Size tile,
                             float* memory) {
  constexpr int kPa = kPitchOf<kA, kRows>, kPb = kPitchOf<kB, kWide>;
  const Size across = parts(to.cols, kWide), top = tile / across * kRows,
             left = tile % across * kWide;
  float *tile_a = memory, *tile_b = memory + 64 * 72;
  const int row = static_cast<int>(threadIdx.x) / 32 * 16;
  float c[kWide / 8][4] = {};
  for (Size k = 0; k < depth; k += kDepth) {
    if constexpr (kA == Lie::along) {
      stage<kThreads, kRows, kDepth, kPa>(tile_a, a, top, k);
    } else {
      stage<kThreads, kDepth, kRows, kPa>(tile_a, a, k, top);
    }
    if constexpr (kB == Lie::along) {
      stage<kThreads, kWide, kDepth, kPb>(tile_b, b, left, k);
    } else {
      stage<kThreads, kDepth, kWide, kPb>(tile_b, b, k, left);
    }
    wait_for_tiles();
    if (top + row < to.rows) {
      multiply(c, Factor<kA, kPa, kReadA>{tile_a}, row, Factor<kB, kPb, kReadB>{tile_b},
               static_cast<int>(min(Size{kDepth}, parts(depth - k, 8) * 8)));
    }
    __syncthreads();
  }
  const bool aligned =
      to.cols % 2 == 0 && reinterpret_cast<std::uintptr_t>(to.data) % (2 * sizeof(T)) == 0;
  const Size first = left + 2 * (lane() % 4);
  for (int low = 0; low < 2; ++low) {
    const Size i = top + row + lane() / 4 + 8 * low;
    if (i >= to.rows) continue;
#pragma unroll
    for (int n = 0; n < kWide / 8; ++n) {
      const Size j = first + 8 * n, at = i * to.cols + j;
      if (j >= to.cols) continue;
      const bool both = j + 1 < to.cols;
      float x = c[n][2 * low], y = c[n][2 * low + 1];
      if (to.add != nullptr) x += to.add[at], y += both ? to.add[at + 1] : 0;
      store_pair(to.data + at, x, y, both, aligned);
    }
  }
}

// Deep tiles are narrow ones: the longest of them should not take longer than the others together.
bool is_wide(Size depth) { return depth <= 256; }
Size tiles_of(Size rows, Size cols, bool wide) {
  return parts(rows, kRows) * parts(cols, wide ? 64 : 32);
}

// A layer's products of which there are results: y = x W^T (+ add), dx = dy W, dw = dy^T x.
template <class T>
struct Linear {
  Size M, rows, cols;
  const T* x;
  const Byte* blocks;
  const T* dy = nullptr;
  T *y = nullptr, *dx = nullptr;
  float* dw = nullptr;
  const float* add = nullptr;
  bool wide_y = false, wide_dx = false, wide_dw = false;
  Size tiles_y = 0, tiles_dx = 0, tiles_dw = 0;

  void plan() {
    wide_y = is_wide(cols), wide_dx = is_wide(rows), wide_dw = is_wide(M);
    if (y != nullptr) tiles_y = tiles_of(M, rows, wide_y);
    if (dx != nullptr) tiles_dx = tiles_of(M, cols, wide_dx);
    if (dw != nullptr) tiles_dw = tiles_of(rows, cols, wide_dw);
  }
};

template <int kWide, Read kRead, class T>
__device__ void outputs(const Linear<T>& l, Size tile, float* memory) {
  product_tile<kWide, Lie::along, kRead, Lie::along, Read::exact>(
      Matrix<T>(l.x, l.M, l.cols, l.cols), Codes(l.blocks, l.rows, l.cols), l.cols,
      Target<T>{l.y, l.M, l.rows, l.add}, tile, memory);
}
template <int kWide, Read kRead, class T>
__device__ void input_gradients(const Linear<T>& l, Size tile, float* memory) {
  product_tile<kWide, Lie::along, kRead, Lie::across, Read::exact>(
      Matrix<T>(l.dy, l.M, l.rows, l.rows), Codes(l.blocks, l.rows, l.cols), l.rows,
      Target<T>{l.dx, l.M, l.cols, nullptr}, tile, memory);
}
template <int kWide, Read kRead, class T>
__device__ void weight_gradients(const Linear<T>& l, Size tile, float* memory) {
  product_tile<kWide, Lie::across, kRead, Lie::across, kRead>(
      Matrix<T>(l.dy, l.M, l.rows, l.rows), Matrix<T>(l.x, l.M, l.cols, l.cols), l.M,
      Target<float>{l.dw, l.rows, l.cols, nullptr}, tile, memory);
}

template <Read kRead, class T>
__global__ void __launch_bounds__(kThreads) linear(const __grid_constant__ Linear<T> l) {
  __shared__ __align__(16) float memory[2 * 64 * 72];
  Size tile = blockIdx.x;
  if (tile < l.tiles_y)
    return l.wide_y ? outputs<64, kRead>(l, tile, memory) : outputs<32, kRead>(l, tile, memory);
  tile -= l.tiles_y;
  if (tile < l.tiles_dx)
    return l.wide_dx ? input_gradients<64, kRead>(l, tile, memory)
                     : input_gradients<32, kRead>(l, tile, memory);
  tile -= l.tiles_dx;
  return l.wide_dw ? weight_gradients<64, kRead>(l, tile, memory)
                   : weight_gradients<32, kRead>(l, tile, memory);
}

// --- rows ---

// The documents of a batch are `first` and those after it, and then the first ones again. T tokens
// are read of each, and they are `step` apart.
struct Documents {
  const std::uint16_t* tokens;
  Size count, T, step, first;

  __device__ int token(Size i) const { return tokens[(first + i / T) % count * step + i % T]; }
};

__global__ void embed(Size n, Size d, Documents docs, const Byte* table, float* x) {
  const Size i = warp_of_grid();
  if (i >= n) return;
  const Byte* row = table + docs.token(i) * (d / kScaled) * kPacked;
  for (Size j = lane(); j < d; j += 32) {
    const Byte* block = row + j / kScaled * kPacked;
    const int at = static_cast<int>(j % kScaled);
    x[i * d + j] = weight_of(block[2 + at / 4], at % 4, scale_of(block[0] | block[1] << 8));
  }
}

// The first of the positions with a token adds up what all of them say, in their order.
__global__ void embed_back(Size n, Size d, Documents docs, const float* dx, float* dw) {
  const Size i = warp_of_grid();
  if (i >= n) return;
  const int token = docs.token(i);
  bool seen = false;
  for (Size j = lane(); j < i; j += 32) seen = seen || docs.token(j) == token;
  if (__any_sync(kAll, seen)) return;
  float* row = dw + token * d;
  for (Size from = i; from < n; from += 32) {
    const bool same = from + lane() < n && docs.token(from + lane()) == token;
    for (unsigned left = __ballot_sync(kAll, same); left != 0; left &= left - 1) {
      const float* one = dx + (from + __ffs(static_cast<int>(left)) - 1) * d;
      for (Size j = lane(); j < d; j += 32) row[j] += one[j];
    }
  }
}

// 1 / the root of the mean square of a warp's row.
__device__ float inverse_root(const float* x, Size width, float eps) {
  float square = 0;
  for (Size j = lane(); j < width; j += 32) square += x[j] * x[j];
  return 1 / sqrtf(total(square) / static_cast<float>(width) + eps);
}

__global__ void norm(Size n, Size d, float eps, const float* x, const float* gain, float* h) {
  const Size i = warp_of_grid();
  if (i >= n) return;
  const float r = inverse_root(x + i * d, d, eps);
  for (Size j = lane(); j < d; j += 32) h[i * d + j] = x[i * d + j] * r * gain[j];
}

// Adds to dx. What each row says about the gain goes to `about`.
__global__ void norm_back(Size n, Size d, float eps, const float* x, const float* gain,
                          const float* dh, float* dx, float* about) {
  const Size i = warp_of_grid();
  if (i >= n) return;
  x += i * d, dh += i * d, dx += i * d, about += i * d;
  const float r = inverse_root(x, d, eps);
  float projection = 0;
  for (Size j = lane(); j < d; j += 32) {
    about[j] = dh[j] * x[j] * r;
    projection += about[j] * gain[j];
  }
  projection = total(projection) * r * r / static_cast<float>(d);
  for (Size j = lane(); j < d; j += 32) dx[j] += r * dh[j] * gain[j] - projection * x[j];
}

// A block adds up 32 columns; each of its warps has every eighth row.
__global__ void add_rows_up(Size rows, Size width, const float* x, float* sums) {
  __shared__ float part[8][33];
  const Size j = Size{blockIdx.x} * 32 + lane();
  const int strip = static_cast<int>(threadIdx.x) / 32;
  float sum = 0;
  for (Size i = strip; i < rows && j < width; i += 8) sum += x[i * width + j];
  part[strip][lane()] = sum;
  __syncthreads();
  if (strip > 0 || j >= width) return;
  for (int s = 1; s < 8; ++s) sum += part[s][lane()];
  sums[j] = sum;
}

// both [n, 2 ff]: gates, then what they are multiplied with.
__global__ void gate(Size n, Size ff, const float* both, float* gated) {
  const Size at = Size{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= n * ff) return;
  const float* pair = both + at / ff * 2 * ff + at % ff;
  gated[at] = pair[0] / (1 + expf(-pair[0])) * pair[ff];
}

__global__ void gate_back(Size n, Size ff, const float* both, const float* dgated, float* dboth) {
  const Size at = Size{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= n * ff) return;
  const Size place = at / ff * 2 * ff + at % ff;
  const float z = both[place], sigmoid = 1 / (1 + expf(-z));
  dboth[place] = dgated[at] * both[place + ff] * sigmoid * (1 + z * (1 - sigmoid));
  dboth[place + ff] = dgated[at] * z * sigmoid;
}

// Logits become gradients of the mean loss of all tokens that follow another one.
__global__ void loss_back(Size n, Size V, Documents docs, float* logits) {
  const Size i = warp_of_grid();
  if (i >= n) return;
  float* row = logits + i * V;
  const Size T = docs.T;
  if ((i + 1) % T == 0) {  // nothing follows
    for (Size v = lane(); v < V; v += 32) row[v] = 0;
    return;
  }
  const int next = docs.token(i + 1);
  float most = -INFINITY, sum = 0;
  for (Size v = lane(); v < V; v += 32) most = fmaxf(most, row[v]);
  most = largest(most);
  for (Size v = lane(); v < V; v += 32) sum += row[v] = expf(row[v] - most);
  const float share = 1 / static_cast<float>(n / T * (T - 1)), factor = share / total(sum);
  for (Size v = lane(); v < V; v += 32) row[v] = row[v] * factor - (v == next ? share : 0);
}

// --- heads ---

// Heads of a batch. raw [tokens, Hq + 2 Hkv, hd]: queries, keys, values; turned
// [tokens, Hq + Hkv, hd]: queries and keys after norm and rotation; mixed [tokens, Hq, hd].
struct Heads {
  int docs, T, Hq, Hkv, hd;
  float eps, scale;
  const float2* turns;  // [T, hd / 2]: cosines and sines

  __host__ __device__ Size tokens() const { return Size{docs} * T; }
  __host__ __device__ Size raw_step() const { return Size{Hq + 2 * Hkv} * hd; }
  __host__ __device__ Size turned_step() const { return Size{Hq + Hkv} * hd; }
  __host__ __device__ Size mixed_step() const { return Size{Hq} * hd; }
};

__global__ void make_turns(Size T, int hd, double theta, float2* turns) {
  const Size at = Size{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= T * (hd / 2)) return;
  const double exponent = -2.0 * static_cast<double>(at % (hd / 2)) / hd;
  double s, c;
  sincos(static_cast<double>(at / (hd / 2)) * pow(theta, exponent), &s, &c);
  turns[at] = make_float2(static_cast<float>(c), static_cast<float>(s));
}

// gains [2, hd]: of queries and of keys. A warp has a head of a token.
__global__ void turn(Heads s, const float* raw, const float* gains, float* turned) {
  const Size at = warp_of_grid();
  if (at >= s.tokens() * (s.Hq + s.Hkv)) return;
  const Size i = at / (s.Hq + s.Hkv);
  const int head = static_cast<int>(at - i * (s.Hq + s.Hkv)), half = s.hd / 2;
  const float* x = raw + i * s.raw_step() + Size{head} * s.hd;
  const float *gain = gains + (head < s.Hq ? 0 : s.hd), r = inverse_root(x, s.hd, s.eps);
  const float2* by = s.turns + i % s.T * half;
  float* to = turned + at * s.hd;
  for (int j = lane(); j < half; j += 32) {
    const float a = x[j] * r * gain[j], b = x[j + half] * r * gain[j + half];
    to[j] = a * by[j].x - b * by[j].y;
    to[j + half] = a * by[j].y + b * by[j].x;
  }
}

// A warp has all heads of a token, and adds up what they say about the gains: about [tokens, 2 hd].
__global__ void turn_back(Heads s, const float* raw, const float* gains, const float* dturned,
                          float* draw, float* about) {
  const Size i = warp_of_grid();
  if (i >= s.tokens()) return;
  const int half = s.hd / 2;
  const float2* by = s.turns + i % s.T * half;
  for (int head = 0; head < s.Hq + s.Hkv; ++head) {
    const int kind = head < s.Hq ? 0 : s.hd;
    const float *x = raw + i * s.raw_step() + Size{head} * s.hd, *gain = gains + kind,
                *dy = dturned + i * s.turned_step() + Size{head} * s.hd;
    float *dx = draw + i * s.raw_step() + Size{head} * s.hd, *sums = about + i * 2 * s.hd + kind;
    const float r = inverse_root(x, s.hd, s.eps);
    const bool starts = head == 0 || head == s.Hq;
    float projection = 0;
    const auto take = [&](int j, float back) {
      const float says = back * x[j] * r;
      sums[j] = starts ? says : sums[j] + says;
      projection += says * gain[j];
      dx[j] = back * gain[j];
    };
    for (int j = lane(); j < half; j += 32) {
      take(j, dy[j] * by[j].x + dy[j + half] * by[j].y);
      take(j + half, dy[j + half] * by[j].x - dy[j] * by[j].y);
    }
    projection = total(projection) * r * r / static_cast<float>(s.hd);
    for (int j = lane(); j < half; j += 32) {
      dx[j] = r * dx[j] - projection * x[j];
      dx[j + half] = r * dx[j + half] - projection * x[j + half];
    }
  }
}

// --- attention ---

// Two warps have 32 rows of a document's head, 16 each, and pass over 32 rows of the other side at
// a time. Heads are staged 64 columns at a time; a block has as many columns of the results, and
// wider heads have several blocks.
constexpr int kSeen = 32, kChunk = 64, kHeadThreads = 64;
constexpr int kHeadPitch = kChunk + 8, kWeightPitch = kSeen + 8;
template <Read kRead>
using Along = Factor<Lie::along, kHeadPitch, kRead>;
template <Read kRead>
using Across = Factor<Lie::across, kHeadPitch, kRead>;
template <Read kRead>
using Weights = Factor<Lie::along, kWeightPitch, kRead>;

__device__ void stage_head(float* tile, const Matrix<float>& m, int row, int chunk) {
  stage<kHeadThreads, kSeen, kChunk, kHeadPitch>(tile, m, row, Size{chunk} * kChunk);
}

// Which tile, of what, a block has.
struct HeadTile {
  int chunks, chunk, first, head;
  Size doc;

  __host__ __device__ static Size count(const Heads& s, int heads) {
    return Size{s.docs} * heads * parts(s.T, kSeen) * parts(s.hd, kChunk);
  }
  __device__ HeadTile(const Heads& s, int heads, Size at) {
    chunks = static_cast<int>(parts(s.hd, kChunk));
    const Size tiles = parts(s.T, kSeen);
    chunk = static_cast<int>(at % chunks), at /= chunks;
    first = static_cast<int>(at % tiles) * kSeen, at /= tiles;
    head = static_cast<int>(at % heads), doc = at / heads;
  }
  // The i-th chunk to pass over. The last one is the block's own.
  __device__ int turn(int i) const { return (chunk + 1 + i) % chunks; }
  __device__ int deep(const Heads& s, int c) const {
    return min(kChunk, (s.hd - c * kChunk + 7) / 8 * 8);
  }
};

__device__ Matrix<float> head_of(const Heads& s, const float* x, Size step, Size doc, int head) {
  return {x + doc * s.T * step + Size{head} * s.hd, s.T, s.hd, step};
}

// Rows of a product in registers go to the warp's rows of a tile of weights.
__device__ void keep_weights(float* tile, const float (&w)[kSeen / 8][4]) {
  const int g = lane() / 4 + static_cast<int>(threadIdx.x) / 32 * 16, t = lane() % 4;
  __syncwarp();
#pragma unroll
  for (int n = 0; n < kSeen / 8; ++n) {
    for (int low = 0; low < 2; ++low) {
      *reinterpret_cast<float2*>(tile + (g + 8 * low) * kWeightPitch + 8 * n + 2 * t) =
          make_float2(w[n][2 * low], w[n][2 * low + 1]);
    }
  }
  __syncwarp();
}

__device__ void store_columns(const float (&c)[kChunk / 8][4], const HeadTile& p, const Heads& s,
                              float* to, Size step, const float (&factor)[2]) {
  const int t = lane() % 4, row = static_cast<int>(threadIdx.x) / 32 * 16 + lane() / 4;
  for (int low = 0; low < 2; ++low) {
    const int i = p.first + row + 8 * low;
    if (i >= s.T) continue;
    float* line = to + (p.doc * s.T + i) * step + Size{p.head} * s.hd;
#pragma unroll
    for (int n = 0; n < kChunk / 8; ++n) {
      for (int odd = 0; odd < 2; ++odd) {
        const int j = p.chunk * kChunk + 8 * n + 2 * t + odd;
        if (j < s.hd) line[j] = c[n][2 * low + odd] * factor[low];
      }
    }
  }
}

__device__ float over_quad(float x, bool add) {
  for (int mask = 1; mask < 4; mask *= 2) {
    const float other = __shfl_xor_sync(kAll, x, mask);
    x = add ? x + other : fmaxf(x, other);
  }
  return x;
}

// lse [tokens, Hq]: logarithms of the sums of exponentials.
template <Read kRead>
__global__ void __launch_bounds__(kHeadThreads)
    attend(Heads s, const float* turned, const float* raw, float* mixed, float* lse) {
  __shared__ __align__(16) float own[kSeen * kHeadPitch], other[kSeen * kHeadPitch],
      weights[kSeen * kWeightPitch];
  const HeadTile p(s, s.Hq, blockIdx.x);
  const int kv = p.head / (s.Hq / s.Hkv), warp_row = static_cast<int>(threadIdx.x) / 32 * 16;
  const int row = p.first + warp_row + lane() / 4, t = lane() % 4;
  const auto q = head_of(s, turned, s.turned_step(), p.doc, p.head),
             k = head_of(s, turned, s.turned_step(), p.doc, s.Hq + kv),
             v = head_of(s, raw, s.raw_step(), p.doc, s.Hq + s.Hkv + kv);
  const int columns = p.deep(s, p.chunk) / 8;
  float sums[kChunk / 8][4] = {}, most[2] = {-INFINITY, -INFINITY}, mass[2] = {};
  for (int key = 0; key < min(s.T, p.first + kSeen); key += kSeen) {
    float c[kSeen / 8][4] = {};
    for (int i = 0; i < p.chunks; ++i) {
      __syncthreads();
      if (key == 0 || p.chunks > 1) stage_head(own, q, p.first, p.turn(i));
      stage_head(other, k, key, p.turn(i));
      wait_for_tiles();
      multiply(c, Along<kRead>{own}, warp_row, Along<kRead>{other}, p.deep(s, p.turn(i)));
    }
    for (int low = 0; low < 2; ++low) {
      float peak = most[low], sum = 0;
      for (int n = 0; n < kSeen / 8; ++n) {
        for (int odd = 0; odd < 2; ++odd) {
          float& x = c[n][2 * low + odd];
          const int j = key + 8 * n + 2 * t + odd;
          x = j <= row + 8 * low && j < s.T ? x * s.scale : -INFINITY;
          peak = fmaxf(peak, x);
        }
      }
      peak = over_quad(peak, false);
      const float shrink = expf(most[low] - peak);
      for (int n = 0; n < kSeen / 8; ++n) {
        for (int odd = 0; odd < 2; ++odd) {
          float& x = c[n][2 * low + odd];
          x = expf(x - peak);
          sum += x;
        }
      }
      mass[low] = mass[low] * shrink + over_quad(sum, true);
      most[low] = peak;
      for (auto& tile : sums) tile[2 * low] *= shrink, tile[2 * low + 1] *= shrink;
    }
    keep_weights(weights, c);
    __syncthreads();
    stage_head(other, v, key, p.chunk);
    wait_for_tiles();
    multiply(sums, Weights<kRead>{weights}, warp_row, Across<kRead>{other}, kSeen, columns);
  }
  store_columns(sums, p, s, mixed, s.mixed_step(), {1 / mass[0], 1 / mass[1]});
  if (t != 0 || p.chunk != 0) return;
  for (int low = 0; low < 2; ++low) {
    if (row + 8 * low < s.T)
      lse[(p.doc * s.T + row + 8 * low) * s.Hq + p.head] = most[low] + logf(mass[low]);
  }
}

// The product of each result with its gradient.
__global__ void make_deltas(Heads s, const float* mixed, const float* dmixed, float* deltas) {
  const Size i = warp_of_grid();
  if (i >= s.tokens() * s.Hq) return;
  float delta = 0;
  for (int j = lane(); j < s.hd; j += 32) delta += mixed[i * s.hd + j] * dmixed[i * s.hd + j];
  delta = total(delta);
  if (lane() == 0) deltas[i] = delta;
}

struct AttendBack {
  const float *turned, *raw, *dmixed, *lse, *deltas;
  float *dturned, *draw;
};

// A tile of keys and values, passing over the queries that see it and the gradients of their
// results, or a tile of these, passing over keys and values: one way is the other turned round.
template <bool kKeys>
__device__ void attend_back_tile(const Heads& s, const AttendBack& a, Size at, float* memory) {
  constexpr int kTile = kSeen * kHeadPitch;
  constexpr Read kRead = Read::rounded;
  float *own = memory, *own_too = own + kTile, *other = own_too + kTile, *other_too = other + kTile,
        *weights = other_too + kTile;
  const HeadTile p(s, kKeys ? s.Hkv : s.Hq, at);
  const int group = s.Hq / s.Hkv, kv = kKeys ? p.head : p.head / group;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * 16, t = lane() % 4;
  const int row = p.first + warp_row + lane() / 4, columns = p.deep(s, p.chunk) / 8;
  const auto k = head_of(s, a.turned, s.turned_step(), p.doc, s.Hq + kv),
             v = head_of(s, a.raw, s.raw_step(), p.doc, s.Hq + s.Hkv + kv);
  float sums[kChunk / 8][4] = {}, sums_too[kChunk / 8][4] = {};
  for (int h = 0; h < (kKeys ? group : 1); ++h) {
    const int head = kKeys ? kv * group + h : p.head;
    const auto q = head_of(s, a.turned, s.turned_step(), p.doc, head),
               dm = head_of(s, a.dmixed, s.mixed_step(), p.doc, head);
    for (int there = kKeys ? p.first : 0; there < (kKeys ? s.T : min(s.T, p.first + kSeen));
         there += kSeen) {
      float product[kSeen / 8][4] = {}, slope[kSeen / 8][4] = {};
      for (int i = 0; i < p.chunks; ++i) {
        const int chunk = p.turn(i);
        __syncthreads();
        stage_head(own, kKeys ? k : q, p.first, chunk);
        stage_head(own_too, kKeys ? v : dm, p.first, chunk);
        stage_head(other, kKeys ? q : k, there, chunk);
        stage_head(other_too, kKeys ? dm : v, there, chunk);
        wait_for_tiles();
        multiply(product, Along<kRead>{own}, warp_row, Along<kRead>{other}, p.deep(s, chunk));
        multiply(slope, Along<kRead>{own_too}, warp_row, Along<kRead>{other_too}, p.deep(s, chunk));
      }
      for (int n = 0; n < kSeen / 8; ++n) {
        for (int e = 0; e < 4; ++e) {
          const int mine = row + e / 2 * 8, theirs = there + 8 * n + 2 * t + e % 2;
          const int query = kKeys ? theirs : mine, key = kKeys ? mine : theirs;
          float probability = 0, delta = 0;
          if (key <= query && query < s.T) {
            const Size place = (p.doc * s.T + query) * s.Hq + head;
            probability = expf(product[n][e] * s.scale - a.lse[place]);
            delta = a.deltas[place];
          }
          product[n][e] = probability;
          slope[n][e] = s.scale * probability * (slope[n][e] - delta);
        }
      }
      if (kKeys) {
        keep_weights(weights, product);
        multiply(sums_too, Weights<kRead>{weights}, warp_row, Across<kRead>{other_too}, kSeen,
                 columns);
      }
      keep_weights(weights, slope);
      multiply(sums, Weights<kRead>{weights}, warp_row, Across<kRead>{other}, kSeen, columns);
    }
  }
  float* to = a.dturned + (kKeys ? Size{s.Hq} * s.hd : 0);
  store_columns(sums, p, s, to, s.turned_step(), {1, 1});
  if (kKeys)
    store_columns(sums_too, p, s, a.draw + Size{s.Hq + s.Hkv} * s.hd, s.raw_step(), {1, 1});
}

__global__ void __launch_bounds__(kHeadThreads) attend_back(Heads s, AttendBack a, Size queries) {
  __shared__ __align__(16) float memory[4 * kSeen * kHeadPitch + kSeen * kWeightPitch];
  const Size at = blockIdx.x;
  if (at < queries) {
    attend_back_tile<false>(s, a, at, memory);
  } else {
    attend_back_tile<true>(s, a, at - queries, memory);
  }
}

// --- generation ---

// Keys of a layer in the state of the first document, [T, Hkv, hd], and how far from there its
// values and the next document's keys are.
struct Cache {
  float* keys;
  Size values, document;
  int position;  // of the token that is under way
};

// A warp has a key and its value.
__global__ void remember(Heads s, Cache c, const float* turned, const float* raw) {
  const Size at = warp_of_grid();
  if (at >= s.tokens() * s.Hkv) return;
  const Size doc = at / s.Hkv, head = at - doc * s.Hkv;
  float* key = c.keys + doc * c.document + (Size{c.position} * s.Hkv + head) * s.hd;
  for (int j = lane(); j < s.hd; j += 32) {
    key[j] = turned[doc * s.turned_step() + (s.Hq + head) * s.hd + j];
    key[c.values + j] = raw[doc * s.raw_step() + (s.Hq + s.Hkv + head) * s.hd + j];
  }
}

// A warp has a query: first a lane a key, then a lane a column. weights [docs, Hq, positions].
__global__ void recall(Heads s, Cache c, const float* turned, float* weights, float* mixed) {
  const Size at = warp_of_grid();
  if (at >= s.tokens() * s.Hq) return;
  const Size doc = at / s.Hq, head = at - doc * s.Hq, step = Size{s.Hkv} * s.hd;
  const float* query = turned + doc * s.turned_step() + head * s.hd;
  const float* keys = c.keys + doc * c.document + head / (s.Hq / s.Hkv) * s.hd;
  const int count = c.position + 1;
  weights += at * count;
  float most = -INFINITY, mass = 0;
  for (int k = lane(); k < count; k += 32) {
    float score = 0;
    for (int j = 0; j < s.hd; ++j) score += query[j] * keys[k * step + j];
    weights[k] = score * s.scale;
    most = fmaxf(most, weights[k]);
  }
  most = largest(most);
  for (int k = lane(); k < count; k += 32) mass += weights[k] = expf(weights[k] - most);
  mass = total(mass);
  __syncwarp();
  for (int j = lane(); j < s.hd; j += 32) {
    float value = 0;
    for (int k = 0; k < count; ++k) value += weights[k] * keys[c.values + k * step + j];
    mixed[at * s.hd + j] = value / mass;
  }
}

// A warp a document: the first of the largest logits.
__global__ void choose(Size docs, int V, const float* logits, std::uint16_t* tokens, Size step) {
  const Size i = warp_of_grid();
  if (i >= docs) return;
  float mine = -INFINITY;
  int best = V;
  for (int v = lane(); v < V; v += 32) {
    if (logits[i * V + v] > mine) mine = logits[i * V + v], best = v;
  }
  const float top = largest(mine);
  best = reduce(mine == top ? best : V, [](int a, int b) { return min(a, b); });
  if (lane() == 0) tokens[i * step] = static_cast<std::uint16_t>(best);
}

// --- weights in training ---

__device__ std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

// A normal number of its own for each weight, by Box and Muller.
__device__ float draw(std::uint64_t seed, Size i) {
  const std::uint64_t bits = mix(mix(seed) + static_cast<std::uint64_t>(i));
  const float u = (static_cast<float>(bits >> 40) + 0.5f) * 0x1p-24f;
  const float v = static_cast<float>(bits & 0xffffff) * 0x1p-24f;
  return sqrtf(-2 * logf(u)) * cospif(2 * v);
}

// latent: all matrices, then all gains. Those of the first `tables` weights start smaller.
struct Parameters {
  Size weights, gains, tables;
  float *latent, *gradient, *mean, *square;
  Byte* blocks;

  __host__ __device__ Size all() const { return weights + gains; }
  __host__ __device__ float* gain() const { return latent + weights; }
  __host__ __device__ Size warps() const { return weights / kScaled + parts(gains, kScaled); }
};

// Lane i of the warp has the weights 4 i to 4 i + 3 of its unit. Gains are whole fours too, because
// heads are even.
struct Fours {
  Size unit, from;
  bool exist, matrix;

  __device__ explicit Fours(const Parameters& p)
      : unit(warp_of_grid()),
        from(unit * kScaled + 4 * lane()),
        exist(from < p.all()),
        matrix(unit * kScaled < p.weights) {}

  __device__ Four& of(float* x) const { return *reinterpret_cast<Four*>(x + from); }
};

// Small weights: trainings are short, and Adam's steps have a size of their own, so that codes of
// larger ones would hardly change.
__global__ void begin(Parameters p, std::uint64_t seed) {
  const Fours f(p);
  if (!f.exist) return;
  Four w;
  const float sigma = f.from < p.tables ? 0.02f : 0.04f;
  for (int i = 0; i < 4; ++i) w.at[i] = f.matrix ? sigma * draw(seed, f.from + i) : 1;
  f.of(p.latent) = w;
  f.of(p.mean) = f.of(p.square) = Four{};
  if (f.matrix) pack(w, p.blocks + f.unit * kPacked);
}

constexpr int kSquareSums = 128;  // blocks, each of kThreads threads

__global__ void add_squares(Size n, const float* x, float* sums) {
  __shared__ float part[kThreads / 32];
  float sum = 0;
  for (Size i = Size{blockIdx.x} * kThreads + threadIdx.x; i < n / 4; i += kSquareSums * kThreads) {
    const float4 v = reinterpret_cast<const float4*>(x)[i];
    sum += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
  sum = total(sum);
  if (lane() == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) sums[blockIdx.x] = part[0] + part[1] + part[2] + part[3];
}

struct Step {
  float rate, gain_rate, unbias1, unbias2;
};

// A warp a block of weights. Gradients that are longer than 1 all together are cut to that.
__global__ void adam(Parameters p, Step s, const float* square_sums) {
  constexpr float kFirst = 0.9f, kSecond = 0.98f;
  const Fours f(p);
  float length = 0;
  for (int i = lane(); i < kSquareSums; i += 32) length += square_sums[i];
  const float cut = 1 / fmaxf(1.0f, sqrtf(total(length)));
  if (!f.exist) return;
  const float rate = (f.matrix ? s.rate : s.gain_rate) * s.unbias1;
  const Four gradient = f.of(p.gradient);
  Four w = f.of(p.latent), mean = f.of(p.mean), square = f.of(p.square);
  for (int i = 0; i < 4; ++i) {
    const float g = gradient.at[i] * cut;
    mean.at[i] = kFirst * mean.at[i] + (1 - kFirst) * g;
    square.at[i] = kSecond * square.at[i] + (1 - kSecond) * g * g;
    w.at[i] -= rate * mean.at[i] / (sqrtf(square.at[i] * s.unbias2) + 1e-8f);
  }
  f.of(p.latent) = w, f.of(p.mean) = mean, f.of(p.square) = square;
  if (f.matrix) pack(w, p.blocks + f.unit * kPacked);
}

// --- statistics and distillation ---

// Counts of the matrix that a block has: counts [7].
struct Counted {
  const Byte *now, *before;
  Size rows, cols;
  std::int64_t* counts;

  __device__ int sign(const Byte* blob, Size row, Size col) const {
    const Byte* block = blob + (row * (cols / kScaled) + col / kScaled) * kPacked;
    if ((block[0] | (block[1] & 127) << 8) == 0) return 0;
    const int at = static_cast<int>(col % kScaled);
    return (block[2 + at / 4] >> at % 4 * 2 & 3) - 1;
  }
};

__global__ void __launch_bounds__(kThreads) count(Counted m) {
  __shared__ unsigned long long sums[7];
  if (threadIdx.x < 7) sums[threadIdx.x] = 0;
  __syncthreads();
  const auto note = [&](int what, bool is) {
    const unsigned lanes = __ballot_sync(kAll, is);
    if (lane() == 0 && lanes != 0)
      atomicAdd(&sums[what], static_cast<unsigned long long>(__popc(lanes)));
  };
  for (Size row = threadIdx.x / 32; row < m.rows; row += kThreads / 32) {
    bool empty = true;
    for (Size col = lane(); col < m.cols; col += 32) {
      const int is = m.sign(m.now, row, col);
      const int was = m.before != nullptr ? m.sign(m.before, row, col) : is;
      empty = empty && is == 0;
      note(0, is < 0), note(1, is == 0), note(2, is > 0), note(5, is != was), note(6, is * was < 0);
    }
    empty = __all_sync(kAll, empty);
    note(3, empty && lane() == 0);
  }
  for (Size col = threadIdx.x; col < m.cols; col += kThreads) {
    bool empty = true;
    for (Size row = 0; row < m.rows && empty; ++row) empty = m.sign(m.now, row, col) == 0;
    __syncwarp();
    note(4, empty);
  }
  __syncthreads();
  if (threadIdx.x < 7) m.counts[threadIdx.x] = static_cast<std::int64_t>(sums[threadIdx.x]);
}

// A warp a row. With a, b the scaled logits less their maxima, log p - log q = a - b + log of the
// sums' quotient.
__global__ void distill(Size M, Size V, float temperature, const float* teacher,
                        const float* student, float* loss, float* gradient) {
  const Size i = warp_of_grid();
  if (i >= M) return;
  teacher += i * V, student += i * V, gradient += i * V;
  float top_t = -INFINITY, top_s = -INFINITY;
  for (Size v = lane(); v < V; v += 32)
    top_t = fmaxf(top_t, teacher[v]), top_s = fmaxf(top_s, student[v]);
  top_t = largest(top_t), top_s = largest(top_s);
  const double by = 1 / static_cast<double>(temperature);
  const auto below = [&](float x, float top) {
    return (static_cast<double>(x) - static_cast<double>(top)) * by;
  };
  double mass_t = 0, mass_s = 0;
  for (Size v = lane(); v < V; v += 32)
    mass_t += exp(below(teacher[v], top_t)), mass_s += exp(below(student[v], top_s));
  mass_t = total(mass_t), mass_s = total(mass_s);
  const double between = log(mass_s / mass_t);
  double sum = 0;
  for (Size v = lane(); v < V; v += 32) {
    const double a = below(teacher[v], top_t), b = below(student[v], top_s);
    const double p = exp(a) / mass_t;
    sum += p * (a - b + between);
    gradient[v] = static_cast<float>(temperature * (exp(b) / mass_s - p));
  }
  sum = total(sum);
  const double t = temperature;
  if (lane() == 0) loss[i] = V == 0 ? 0 : static_cast<float>(t * t * sum);
}

// --- host: memory and launches ---

// Parts of one block of device memory. Without a block it only counts.
class Memory {
 public:
  explicit Memory(void* block = nullptr) : block_(static_cast<char*>(block)) {}
  template <class T = float>
  T* take(Size count) {
    char* at = block_ == nullptr ? nullptr : block_ + used_;
    used_ += parts(count * static_cast<Size>(sizeof(T)), 256) * 256;
    return reinterpret_cast<T*>(at);
  }
  std::size_t used() const { return static_cast<std::size_t>(used_); }

 private:
  char* block_;
  Size used_ = 0;
};

class Queue {
 public:
  explicit Queue(const assay_ctx* ctx) : stream_(static_cast<cudaStream_t>(ctx->stream)) {}

  template <class... P, class... A>
  void blocks(Size count, int threads, void (*kernel)(P...), const A&... args) const {
    if (count > 0)
      kernel<<<static_cast<unsigned>(count), static_cast<unsigned>(threads), 0, stream_>>>(args...);
  }
  template <class... P, class... A>
  void warps(Size count, void (*kernel)(P...), const A&... args) const {
    blocks(parts(count * 32, kThreads), kThreads, kernel, args...);
  }
  template <class... P, class... A>
  void threads(Size count, void (*kernel)(P...), const A&... args) const {
    blocks(parts(count, kThreads), kThreads, kernel, args...);
  }
  template <Read kRead, class T>
  void layer(Linear<T> l) const {
    l.plan();
    blocks(l.tiles_y + l.tiles_dx + l.tiles_dw, kThreads, linear<kRead, T>, l);
  }
  void copy(void* to, const void* from, Size bytes) const {
    cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, stream_);
  }
  // Rows of so many tokens, that lie further apart.
  void copy_rows(std::uint16_t* to, Size to_step, const std::uint16_t* from, Size from_step,
                 Size tokens, Size rows) const {
    const auto bytes = [](Size n) { return static_cast<std::size_t>(n) * sizeof(std::uint16_t); };
    if (tokens == 0) return;
    cudaMemcpy2DAsync(to, bytes(to_step), from, bytes(from_step), bytes(tokens),
                      static_cast<std::size_t>(rows), cudaMemcpyDefault, stream_);
  }
  void zero(float* x, Size n) const {
    cudaMemsetAsync(x, 0, static_cast<std::size_t>(n) * sizeof(float), stream_);
  }
  bool wait() const { return cudaStreamSynchronize(stream_) == cudaSuccess; }
  static int status() { return cudaGetLastError() == cudaSuccess ? ASSAY_OK : ASSAY_EINTERNAL; }

 private:
  cudaStream_t stream_;
};

// --- host: the model ---

// Places of matrices, in weights, and of gains, in floats after all matrices.
struct Layout {
  Size V, d, L, Hq, Hkv, hd, ff, T, heads;
  float theta, eps;

  explicit Layout(const tt_config& c)
      : V(c.V),
        d(c.d),
        L(c.L),
        Hq(c.Hq),
        Hkv(c.Hkv),
        hd(c.hd),
        ff(c.ff),
        T(c.T),
        heads(c.tied == 1 ? 0 : 1),
        theta(c.theta),
        eps(c.eps) {}

  Size wide() const { return Hq * hd; }
  Size three() const { return (Hq + 2 * Hkv) * hd; }  // rows of q, k and v
  Size head() const { return heads * V * d; }
  Size qkv(Size l) const { return (1 + heads) * V * d + l * (three() + wide() + 3 * ff) * d; }
  Size o(Size l) const { return qkv(l) + three() * d; }
  Size gate_up(Size l) const { return o(l) + wide() * d; }
  Size down(Size l) const { return gate_up(l) + 2 * ff * d; }
  Size weights() const { return qkv(L); }
  Size bytes() const { return weights() / kScaled * kPacked; }
  Size attention_gain(Size l) const { return l * (2 * d + 2 * hd); }
  Size head_gains(Size l) const { return attention_gain(l) + d; }
  Size ff_gain(Size l) const { return head_gains(l) + 2 * hd; }
  Size final_gain() const { return attention_gain(L); }
  Size gains() const { return final_gain() + d; }
};

// What a layer remembers.
struct Record {
  float *x, *h, *raw, *turned, *mixed, *lse, *x_too, *h_too, *both, *gated;
};

class Model {
 public:
  // With room for n tokens at a time.
  Model(const Queue& queue, const tt_config& c, Size n, bool trains, Memory& memory)
      : queue_(queue), at_(c), tokens_(n), trains_(trains) {
    turns_ = memory.take<float2>(at_.T * at_.hd / 2);
    x_ = memory.take(n * at_.d);
    h_ = memory.take(n * at_.d);
    Memory one;
    take_record(one);
    record_bytes_ = static_cast<Size>(one.used());
    records_ = memory.take<char>((trains ? at_.L : 1) * record_bytes_);
    if (!trains) return;
    logits_ = memory.take(n * at_.V);
    dx_ = memory.take(n * at_.d);
    dh_ = memory.take(n * at_.d);
    dboth_ = memory.take(n * 2 * at_.ff);
    dgated_ = memory.take(n * at_.ff);
    dmixed_ = memory.take(n * at_.wide());
    dturned_ = memory.take(n * (at_.Hq + at_.Hkv) * at_.hd);
    draw_ = memory.take(n * at_.three());
    deltas_ = memory.take(n * at_.Hq);
    about_ = memory.take(n * std::max(at_.d, 2 * at_.hd));
  }

  const Layout& at() const { return at_; }

  void start(const Byte* blocks, const float* gains) {
    blocks_ = blocks, gains_ = gains;
    queue_.threads(at_.T * (at_.hd / 2), make_turns, at_.T, static_cast<int>(at_.hd),
                   static_cast<double>(at_.theta), turns_);
  }

  // logits [docs T, V] of `count` documents, no more than there is room for.
  void forward(const Documents& docs, Size count, float* logits) const {
    const Heads s = heads(count, at_.T);
    through_layers(docs, s, [&](Size, const Record& r) {
      queue_.blocks(HeadTile::count(s, s.Hq), kHeadThreads,
                    trains_ ? attend<Read::rounded> : attend<Read::split>, s, r.turned, r.raw,
                    r.mixed, r.lse);
    });
    through_head(count * at_.T, logits);
  }

  // Documents of one token each, all at the cache's position. `weights` as for recall.
  void forward_one(const Documents& docs, Cache cache, float* weights) const {
    Heads s = heads(docs.count, 1);
    s.turns += cache.position * (s.hd / 2);
    through_layers(docs, s, [&](Size, const Record& r) {
      queue_.warps(s.tokens() * s.Hkv, remember, s, cache, r.turned, r.raw);
      queue_.warps(s.tokens() * s.Hq, recall, s, cache, r.turned, weights, r.mixed);
      cache.keys += 2 * cache.values;
    });
  }

  // Of the tokens that went through the layers last.
  void through_head(Size n, float* logits) const {
    queue_.warps(n, norm, n, at_.d, at_.eps, x_, gains_ + at_.final_gain(), h_);
    product(n, at_.V, at_.d, h_, at_.head(), logits);
  }

  // gradient: of the mean loss, by all matrices and then by all gains.
  void learn(const Documents& docs, float* gradient) const {
    const Size n = tokens_, d = at_.d;
    const Heads s = heads(n / at_.T, at_.T);
    float* gains = gradient + at_.weights();
    forward(docs, n / at_.T, logits_);
    queue_.warps(n, loss_back, n, at_.V, docs, logits_);
    if (at_.heads == 1) queue_.zero(gradient, at_.V * d);
    products_back(n, at_.V, d, h_, at_.head(), logits_, dh_, gradient);
    queue_.zero(dx_, n * d);
    norm_of(n, at_.final_gain(), x_, gains);
    for (Size l = at_.L; l-- > 0;) {
      const Record r = record(l);
      products_back(n, d, at_.ff, r.gated, at_.down(l), dx_, dgated_, gradient);
      queue_.threads(n * at_.ff, gate_back, n, at_.ff, r.both, dgated_, dboth_);
      products_back(n, 2 * at_.ff, d, r.h_too, at_.gate_up(l), dboth_, dh_, gradient);
      norm_of(n, at_.ff_gain(l), r.x_too, gains);
      products_back(n, d, at_.wide(), r.mixed, at_.o(l), dx_, dmixed_, gradient);
      queue_.warps(n * at_.Hq, make_deltas, s, r.mixed, dmixed_, deltas_);
      const AttendBack a{r.turned, r.raw, dmixed_, r.lse, deltas_, dturned_, draw_};
      const Size queries = HeadTile::count(s, s.Hq);
      queue_.blocks(queries + HeadTile::count(s, s.Hkv), kHeadThreads, attend_back, s, a, queries);
      queue_.warps(n, turn_back, s, r.raw, gains_ + at_.head_gains(l), dturned_, draw_, about_);
      add_up(n, 2 * at_.hd, gains + at_.head_gains(l));
      products_back(n, at_.three(), d, r.h, at_.qkv(l), draw_, dh_, gradient);
      norm_of(n, at_.attention_gain(l), r.x, gains);
    }
    queue_.warps(n, embed_back, n, d, docs, dx_, gradient);
  }

 private:
  // mix(l, record): attention of layer l.
  template <class Mix>
  void through_layers(const Documents& docs, const Heads& s, const Mix& mix) const {
    const Size n = s.tokens(), d = at_.d;
    queue_.warps(n, embed, n, d, docs, blocks_, record(0).x);
    for (Size l = 0; l < at_.L; ++l) {
      const Record r = record(l);
      float* next = l + 1 < at_.L ? record(l + 1).x : x_;
      queue_.warps(n, norm, n, d, at_.eps, r.x, gains_ + at_.attention_gain(l), r.h);
      product(n, at_.three(), d, r.h, at_.qkv(l), r.raw);
      queue_.warps(n * (at_.Hq + at_.Hkv), turn, s, r.raw, gains_ + at_.head_gains(l), r.turned);
      mix(l, r);
      product(n, d, at_.wide(), r.mixed, at_.o(l), r.x_too, r.x);
      queue_.warps(n, norm, n, d, at_.eps, r.x_too, gains_ + at_.ff_gain(l), r.h_too);
      product(n, 2 * at_.ff, d, r.h_too, at_.gate_up(l), r.both);
      queue_.threads(n * at_.ff, gate, n, at_.ff, r.both, r.gated);
      product(n, d, at_.ff, r.gated, at_.down(l), next, r.x_too);
    }
  }

  Record take_record(Memory& m) const {
    const Size n = tokens_;
    Record r;
    r.x = m.take(n * at_.d), r.h = m.take(n * at_.d);
    r.raw = m.take(n * at_.three());
    r.turned = m.take(n * (at_.Hq + at_.Hkv) * at_.hd);
    r.mixed = m.take(n * at_.wide()), r.lse = m.take(n * at_.Hq);
    r.x_too = m.take(n * at_.d), r.h_too = m.take(n * at_.d);
    r.both = m.take(n * 2 * at_.ff), r.gated = m.take(n * at_.ff);
    return r;
  }
  Record record(Size l) const {
    Memory m(records_ + (trains_ ? l : 0) * record_bytes_);
    return take_record(m);
  }
  Heads heads(Size count, Size T) const {
    Heads s;
    s.docs = static_cast<int>(count), s.T = static_cast<int>(T);
    s.Hq = static_cast<int>(at_.Hq), s.Hkv = static_cast<int>(at_.Hkv);
    s.hd = static_cast<int>(at_.hd), s.eps = at_.eps;
    s.scale = 1 / std::sqrt(static_cast<float>(at_.hd)), s.turns = turns_;
    return s;
  }

  Linear<float> matrix(Size n, Size rows, Size cols, const float* x, Size place) const {
    return {n, rows, cols, x, blocks_ + place / kScaled * kPacked};
  }
  void product(Size n, Size rows, Size cols, const float* x, Size place, float* y,
               const float* add = nullptr) const {
    Linear<float> l = matrix(n, rows, cols, x, place);
    l.y = y, l.add = add;
    if (trains_) {
      queue_.layer<Read::rounded>(l);
    } else {
      queue_.layer<Read::split>(l);
    }
  }
  void products_back(Size n, Size rows, Size cols, const float* x, Size place, const float* dy,
                     float* dx, float* gradient) const {
    Linear<float> l = matrix(n, rows, cols, x, place);
    l.dy = dy, l.dx = dx, l.dw = gradient + place;
    queue_.layer<Read::rounded>(l);
  }
  // Back from dh_ to dx_.
  void norm_of(Size n, Size gain, const float* x, float* gains) const {
    queue_.warps(n, norm_back, n, at_.d, at_.eps, x, gains_ + gain, dh_, dx_, about_);
    add_up(n, at_.d, gains + gain);
  }
  void add_up(Size n, Size width, float* sums) const {
    queue_.blocks(parts(width, 32), 256, add_rows_up, n, width, about_, sums);
  }

  Queue queue_;
  Layout at_;
  Size tokens_;
  bool trains_;
  const Byte* blocks_ = nullptr;
  const float* gains_ = nullptr;
  float2* turns_;
  char* records_;
  Size record_bytes_;
  float *x_, *h_, *logits_, *dx_, *dh_, *dboth_, *dgated_, *dmixed_, *dturned_, *draw_, *deltas_,
      *about_;
};

// --- host: training ---

constexpr Size kBatch = 4;

class Trainer {
 public:
  Trainer(const Queue& queue, const tt_config& c, Size n_docs, Memory& memory)
      : queue_(queue), model_(queue, c, kBatch * c.T, true, memory), n_docs_(n_docs) {
    const Layout& at = model_.at();
    p_.weights = at.weights(), p_.gains = at.gains(), p_.tables = (1 + at.heads) * at.V * at.d;
    for (float** x : {&p_.latent, &p_.gradient, &p_.mean, &p_.square}) *x = memory.take(p_.all());
    p_.blocks = memory.take<Byte>(at.bytes());
    squares_ = memory.take(kSquareSums);
    tokens_ = memory.take<std::uint16_t>(n_docs * at.T);
  }

  void run(const std::uint16_t* docs, const tt_budget& budget) {
    const Size T = model_.at().T;
    queue_.copy(tokens_, docs, n_docs_ * T * 2);
    queue_.warps(p_.warps(), begin, p_, budget.seed);
    model_.start(p_.blocks, p_.gain());
    if (n_docs_ == 0) return;
    const Clock::time_point start = Clock::now();
    const double seconds = 0.95 * budget.seconds, step_tokens = static_cast<double>(kBatch * T);
    const double tokens = std::min(static_cast<double>(budget.max_tokens),
                                   kPasses * static_cast<double>(n_docs_ * T));
    double elapsed = 0, slowest = 0;
    Size looked = 0, look = 0;
    for (Size step = 0; static_cast<double>(step + 1) * step_tokens <= tokens; ++step) {
      if (step == look) {
        if (!queue_.wait()) return;
        const double now = std::chrono::duration<double>(Clock::now() - start).count();
        if (step > 0)
          slowest = std::max(slowest, (now - elapsed) / static_cast<double>(step - looked));
        elapsed = now, looked = step;
        // As many steps as take a hundredth of the time.
        const double pace = std::max(slowest, 1e-6);
        const Size several = static_cast<Size>(std::min(64.0, 0.01 * seconds / pace));
        look = step + (step == 0 ? 1 : std::max(several, Size{1}));
        if (elapsed + 2 * slowest * static_cast<double>(look - step) > seconds) return;
      }
      // Early on the clock does not count: a slow start would change what tokens alone decide.
      double done = (static_cast<double>(step) + 0.5) * step_tokens / tokens;
      if (elapsed > 0.25 * seconds) done = std::max(done, elapsed / seconds);
      model_.learn({tokens_, n_docs_, T, T, step * kBatch % n_docs_}, p_.gradient);
      move(step + 1, done);
    }
  }

  void write(Byte* blob) const {
    const Layout& at = model_.at();
    queue_.copy(blob, p_.blocks, at.bytes());
    queue_.copy(blob + at.bytes(), p_.gain(), at.gains() * 4);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kPasses = 8;  // over few documents: more learn them by heart

  void move(Size step, double done) {
    const double warm = 0.05;
    const double part = done < warm ? done / warm + 0.02 : (1 - done) / (1 - warm);
    const auto unbias = [&](double beta) {
      return static_cast<float>(1 / (1 - std::pow(beta, static_cast<double>(step))));
    };
    const Step s{static_cast<float>(2e-3 * part), static_cast<float>(1e-2 * part), unbias(0.9),
                 unbias(0.98)};
    queue_.blocks(kSquareSums, kThreads, add_squares, p_.all(), p_.gradient, squares_);
    queue_.warps(p_.warps(), adam, p_, s, squares_);
  }

  Queue queue_;
  Model model_;
  Size n_docs_;
  Parameters p_{};
  float* squares_;
  std::uint16_t* tokens_;
};

// Does work with as much device memory as `plan` takes of a Memory.
template <class Plan, class Work>
int with_memory(assay_ctx* ctx, const Plan& plan, const Work& work) {
  Memory counted;
  plan(counted);
  void* block = ctx->alloc(ctx, counted.used(), 256, 1);
  if (block == nullptr) return ASSAY_ENOMEM;
  Memory memory(block);
  auto planned = plan(memory);
  work(planned);
  const int status = Queue::status();
  ctx->free(ctx, block);
  return status;
}

// --- host: arguments ---

bool good(const tt_config* c) {
  if (c == nullptr || c->V > 65536 || c->T < 2 || (c->tied != 0 && c->tied != 1)) return false;
  if (std::min({c->V, c->d, c->L, c->Hq, c->Hkv, c->hd, c->ff}) < 1) return false;
  return c->hd % 2 == 0 && c->Hq % c->Hkv == 0 && c->d % kScaled == 0 && c->ff % kScaled == 0 &&
         Size{c->Hq} * c->hd % kScaled == 0;
}

bool good_matrix(Size rows, Size cols) { return rows >= 0 && cols >= 0 && cols % kScaled == 0; }

bool missing(const void* array, Size elements) { return elements > 0 && array == nullptr; }

// A warp for each block of a matrix, which is read in one form and written in another.
template <class From, class To>
int convert(assay_ctx* ctx, Size rows, Size cols, void (*kernel)(Size, const From*, To*),
            const From* from, To* to) {
  if (!good_matrix(rows, cols) || missing(from, rows * cols) || missing(to, rows * cols))
    return ASSAY_EINVAL;
  Queue(ctx).warps(rows * cols / kScaled, kernel, rows * cols / kScaled, from, to);
  return Queue::status();
}

template <Read kRead, class T>
int linear_layer(assay_ctx* ctx, const Linear<T>& l) {
  if (l.M < 0 || !good_matrix(l.rows, l.cols)) return ASSAY_EINVAL;
  const Size in = l.M * l.cols, out = l.M * l.rows, all = l.rows * l.cols;
  if (missing(l.x, in) || missing(l.dx, in) || missing(l.dy, out) || missing(l.y, out) ||
      missing(l.blocks, all) || missing(l.dw, all))
    return ASSAY_EINVAL;
  Queue(ctx).layer<kRead>(l);
  return Queue::status();
}

}  // namespace

extern "C" {

size_t tt_blob_bytes(const tt_config* c) {
  if (!good(c)) return 0;
  const Layout layout(*c);
  return static_cast<size_t>(layout.bytes() + layout.gains() * 4);
}

int tt_quantize(assay_ctx* ctx, int64_t rows, int64_t cols, const float* w, uint8_t* blocks) {
  return convert(ctx, rows, cols, quantize, w, blocks);
}
int tt_dequantize(assay_ctx* ctx, int64_t rows, int64_t cols, const uint8_t* blocks, float* w) {
  return convert(ctx, rows, cols, dequantize, blocks, w);
}
int tt_pack_dense(assay_ctx* ctx, int64_t rows, int64_t cols, const uint8_t* blocks,
                  uint8_t* dense) {
  return convert(ctx, rows, cols, to_dense, blocks, dense);
}
int tt_unpack_dense(assay_ctx* ctx, int64_t rows, int64_t cols, const uint8_t* dense,
                    uint8_t* blocks) {
  return convert(ctx, rows, cols, from_dense, dense, blocks);
}

int tt_linear(assay_ctx* ctx, int64_t M, int64_t rows, int64_t cols, const float* x,
              const uint8_t* blocks, const float* dy, float* y, float* dx, float* dw_latent) {
  return linear_layer<Read::split>(ctx,
                                   Linear<float>{M, rows, cols, x, blocks, dy, y, dx, dw_latent});
}
int tt_linear_bf16(assay_ctx* ctx, int64_t M, int64_t rows, int64_t cols, const uint16_t* x,
                   const uint8_t* blocks, const uint16_t* dy, uint16_t* y, uint16_t* dx,
                   float* dw_latent) {
  using Bf16 = __nv_bfloat16;
  return linear_layer<Read::exact>(
      ctx, Linear<Bf16>{M, rows, cols, reinterpret_cast<const Bf16*>(x), blocks,
                        reinterpret_cast<const Bf16*>(dy), reinterpret_cast<Bf16*>(y),
                        reinterpret_cast<Bf16*>(dx), dw_latent});
}

int tt_logits(assay_ctx* ctx, const tt_config* c, const void* blob, const uint16_t* docs,
              int64_t n_docs, float* logits) {
  if (!good(c) || n_docs < 0 || blob == nullptr || missing(docs, n_docs) || missing(logits, n_docs))
    return ASSAY_EINVAL;
  if (n_docs == 0) return ASSAY_OK;
  const Queue queue(ctx);
  const Size at_once = std::clamp(Size{1024} / c->T, Size{1}, Size{n_docs});
  struct Inference {
    Model model;
    float* gains;  // aligned
    std::uint16_t* tokens;
  };
  const auto plan = [&](Memory& m) {
    Model model(queue, *c, at_once * c->T, false, m);
    float* gains = m.take(model.at().gains());
    return Inference{model, gains, m.take<std::uint16_t>(n_docs * c->T)};
  };
  return with_memory(ctx, plan, [&](Inference& i) {
    const Layout& at = i.model.at();
    const Byte* blocks = static_cast<const Byte*>(blob);
    queue.copy(i.gains, blocks + at.bytes(), at.gains() * 4);
    queue.copy(i.tokens, docs, n_docs * c->T * 2);
    i.model.start(blocks, i.gains);
    for (Size first = 0; first < n_docs; first += at_once) {
      i.model.forward({i.tokens, n_docs, c->T, c->T, first}, std::min(at_once, n_docs - first),
                      logits + first * c->T * c->V);
    }
  });
}

int tt_generate(assay_ctx* ctx, const tt_config* c, const void* blob, const tt_generation* g,
                const uint16_t* tokens, float* state, uint16_t* generated) {
  if (!good(c) || g == nullptr || blob == nullptr || g->n_docs < 0 || g->position < 0 ||
      g->n_new < 1 || g->steps < 0 || g->position > c->T || g->n_new > c->T ||
      g->steps > c->T || g->position + g->n_new + g->steps > c->T)
    return ASSAY_EINVAL;
  const Size docs = g->n_docs, all = g->n_new + g->steps, wide = Size{c->Hkv} * c->hd;
  if (missing(tokens, docs) || missing(state, docs) || missing(generated, docs * g->steps))
    return ASSAY_EINVAL;
  if (docs == 0) return ASSAY_OK;
  const Queue queue(ctx);
  struct Generator {
    Model model;
    float *gains, *weights, *logits;
    std::uint16_t* tokens;  // [docs, all]
  };
  const auto plan = [&](Memory& m) {
    Model model(queue, *c, docs, false, m);
    float* gains = m.take(model.at().gains());
    float* weights = m.take(docs * c->Hq * c->T);
    float* logits = m.take(docs * c->V);
    return Generator{model, gains, weights, logits, m.take<std::uint16_t>(all * docs)};
  };
  return with_memory(ctx, plan, [&](Generator& a) {
    const Layout& at = a.model.at();
    const Byte* blocks = static_cast<const Byte*>(blob);
    queue.copy(a.gains, blocks + at.bytes(), at.gains() * 4);
    queue.copy_rows(a.tokens, all, tokens, g->n_new, g->n_new, docs);
    a.model.start(blocks, a.gains);
    for (Size i = 0; i < all; ++i) {
      const Cache cache{state, c->T * wide, 2 * c->L * c->T * wide,
                        static_cast<int>(g->position + i)};
      a.model.forward_one({a.tokens + i, docs, 1, all, 0}, cache, a.weights);
      if (i + 1 < g->n_new || i + 1 == all) continue;
      a.model.through_head(docs, a.logits);
      queue.warps(docs, choose, docs, c->V, a.logits, a.tokens + i + 1, all);
    }
    queue.copy_rows(generated, g->steps, a.tokens + g->n_new, all, g->steps, docs);
    queue.wait();
  });
}

int tt_train(assay_ctx* ctx, const tt_config* c, const uint16_t* docs, int64_t n_docs,
             const tt_budget* budget, void* blob) {
  if (!good(c) || n_docs < 0 || missing(docs, n_docs) || budget == nullptr || blob == nullptr)
    return ASSAY_EINVAL;
  const auto plan = [&](Memory& m) { return Trainer(Queue(ctx), *c, n_docs, m); };
  return with_memory(ctx, plan, [&](Trainer& trainer) {
    trainer.run(docs, *budget);
    trainer.write(static_cast<Byte*>(blob));
  });
}

int tt_blob_statistics(assay_ctx* ctx, const tt_config* c, const void* blob, const void* before,
                       int64_t* counts) {
  if (!good(c) || blob == nullptr || counts == nullptr) return ASSAY_EINVAL;
  const Queue queue(ctx);
  const Layout layout(*c);
  Size place = 0;
  const auto next = [&](Size rows, Size cols) {
    const Byte* was = static_cast<const Byte*>(before);
    queue.blocks(1, kThreads, count,
                 Counted{static_cast<const Byte*>(blob) + place,
                         was == nullptr ? nullptr : was + place, rows, cols, counts});
    place += rows * cols / kScaled * kPacked;
    counts += 7;
  };
  for (Size i = 0; i <= layout.heads; ++i) next(layout.V, layout.d);
  for (Size l = 0; l < layout.L; ++l) {
    next(layout.wide(), layout.d), next(layout.Hkv * layout.hd, layout.d),
        next(layout.Hkv * layout.hd, layout.d);
    next(layout.d, layout.wide()), next(layout.ff, layout.d), next(layout.ff, layout.d),
        next(layout.d, layout.ff);
  }
  return Queue::status();
}

int tt_distill_loss(assay_ctx* ctx, int64_t M, int64_t V, float temperature, const float* teacher,
                    const float* student, float* loss, float* gradient) {
  if (M < 0 || V < 0 || !(temperature > 0) || std::isinf(temperature)) return ASSAY_EINVAL;
  const Size all = M * V;
  if (missing(teacher, all) || missing(student, all) || missing(gradient, all) || missing(loss, M))
    return ASSAY_EINVAL;
  Queue(ctx).warps(M, distill, M, V, temperature, teacher, student, loss, gradient);
  return Queue::status();
}

}  // extern "C"
