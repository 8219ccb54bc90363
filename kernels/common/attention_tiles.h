// What kernels of attention share: tiles of rows in shared memory, and the products of a warp's 16
// rows with them. S is the type of what is staged: float (products as three of tf32), bf16 or f16.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "abi.h"
#include "common/device.h"
#include "common/warp_attention.h"

namespace {

constexpr int kWarps = 4, kThreads = kWarps * kWarp;
constexpr int kRows = 16 * kWarps;  // of a block

constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

// --- what is visible ---

struct Span {  // of positions
  std::int32_t begin, end;
};

// Positions, and a window, stay below kMostPositions, so that their sums have 32 bits.
constexpr std::int64_t kMostPositions = INT_MAX / 4;

__host__ __device__ std::int32_t clamp_to(std::int32_t n, std::int32_t end) {
  return n < 0 ? 0 : n < end ? n : end;
}

__host__ __device__ Span visible_keys(std::int32_t i, std::int32_t Nq, std::int32_t Nk, bool causal,
                                      std::int32_t window) {
  const std::int32_t at = i + Nk - Nq;  // the last key that causality admits
  return {window > 0 ? clamp_to(at - window + 1, Nk) : 0, causal ? clamp_to(at + 1, Nk) : Nk};
}

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
__device__ void copy_piece(std::uint32_t to, const T* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
template <class T>
__device__ void copy_piece(T* to, const T* from) {
  copy_piece(shared_address(to), from);
}
__device__ void clear_piece(std::uint32_t to) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};" ::"r"(to), "r"(0) : "memory");
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

// kCount rows. Row r is at row(r), and exists where r < n. A thread has 16 bytes of every few rows.
template <int kCount, class T, class Row>
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
    for (; r < kCount; r += step, at += step * s.stride)
      *reinterpret_cast<uint4*>(at) = make_uint4(0, 0, 0, 0);
    return;
  }
  for (std::int32_t r = thread / kWarp; r < kCount; r += kWarps) {
    for (std::int32_t d = thread % kWarp; d < s.padded; d += kWarp) {
      if (r < n && d < s.width) {
        copy_element(to + r * s.stride + d, row(r) + d);
      } else {
        to[r * s.stride + d] = Stored<T>(0.0f);
      }
    }
  }
}

// The same of rows that lie `step` elements apart.
template <int kCount, class T>
__device__ void stage(Stored<T>* to, const Staging& s, std::int32_t n, const T* from,
                      std::int64_t step) {
  if (std::is_same_v<T, __nv_fp8_e4m3> || !s.vector) {
    stage<kCount, T>(to, s, n, [&](std::int32_t r) { return from + r * step; });
    return;
  }
  const auto thread = static_cast<std::int32_t>(threadIdx.x);
  const std::int32_t log = log2_above(s.padded / kPiece<T>);
  const std::int32_t d = (thread & ((1 << log) - 1)) * kPiece<T>, rows = kThreads >> log;
  if (d >= s.padded) return;
  std::int32_t r = thread >> log;
  constexpr auto kSize = static_cast<std::int32_t>(sizeof(T));
  std::uint32_t at = shared_address(to) + (r * s.stride + d) * kSize;
  const std::uint32_t at_step = rows * s.stride * kSize;
  if (d < s.width) {
    const T* row = from + r * step + d;
    const std::int64_t row_step = rows * step;
#pragma unroll 4
    for (; r < n; r += rows, at += at_step, row += row_step) copy_piece(at, row);
  }
  for (; r < kCount; r += rows, at += at_step) clear_piece(at);
}

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

// Of a weight that kMaskedWeight marks or not.
__device__ float one_if_visible(float weight) { return fmaxf(copysignf(1.0f, weight), 0.0f); }

// Tensor cores cut sums off instead of rounding them: of a score in the hundreds, whose terms
// have one sign, too much is lost for exp. So its long sum is one of fp32, of 16 terms each.
template <int kTiles>
__device__ void add_products_split(float (&p)[kTiles][4], const std::uint32_t (&raw)[2][4],
                                   std::uint32_t at, std::uint32_t two_tiles) {
  SplitRows a[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
#pragma unroll
    for (int i = 0; i < 4; ++i) a[half].set(i, raw[half][i]);
  }
#pragma unroll
  for (int n = 0; n < kTiles; n += 2, at += two_tiles) {
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

// p = rows times columns, both staged as rows: `q` 16 of the warp, `k` 8 kTiles. At least one step.
// It takes 64 bytes of each row: 16 elements of fp32, 32 of 16 bits.
template <class S, int kTiles>
__device__ void score_products(float (&p)[kTiles][4], std::uint32_t q, std::uint32_t k,
                               std::int32_t stride_bytes, std::int32_t steps) {
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
    if constexpr (std::is_same_v<S, float>) {
      add_products_split(p, a, b_at, two_tiles);
    } else {
      std::uint32_t at = b_at;
#pragma unroll
      for (int n = 0; n < kTiles; n += 2, at += two_tiles) {
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

// Whether any of `rows` staged rows of `pieces` times 16 bytes is not finite. By a warp.
template <class S>
__device__ bool any_not_finite(const S* v, std::int32_t stride, std::int32_t rows,
                               std::int32_t pieces) {
  const int lane = threadIdx.x % kWarp;
  const std::int32_t log = min(log2_above(pieces), 5), step = kWarp >> log;
  std::uint32_t bad = 0;
  float zero = 0;  // NaN with the first value that is not finite
  for (std::int32_t piece = lane & ((1 << log) - 1); piece < pieces; piece += 1 << log) {
    const S* at = v + (lane >> log) * stride + piece * (16 / static_cast<int>(sizeof(S)));
#pragma unroll 4
    for (std::int32_t r = lane >> log; r < rows; r += step, at += step * stride) {
      const uint4 x = *reinterpret_cast<const uint4*>(at);
      for (const std::uint32_t word : {x.x, x.y, x.z, x.w}) {
        if constexpr (std::is_same_v<S, float>) {
          zero = fmaf(__uint_as_float(word), 0.0f, zero);
        } else {
          bad |= not_finite<S>(word);
        }
      }
    }
  }
  return __any_sync(kAll, bad != 0 || zero != 0);
}

// The multiplicand's columns t and t + 4 are called keys 2t and 2t + 1: those of the
// accumulators, so that weights need not move.
template <bool kSelect, class S, int kTiles, int kOutTiles>
__device__ void add_products32(float (&out)[kOutTiles][4], const float (&p)[kTiles][4], const S* v,
                               std::int32_t stride) {
  const int lane = threadIdx.x % kWarp, t = lane % 4, g = lane / 4;
#pragma unroll
  for (int j = 0; j < kTiles; ++j) {
    SplitRows a;
    a.set(0, p[j][0]);
    a.set(1, p[j][2]);
    a.set(2, p[j][1]);
    a.set(3, p[j][3]);
    const auto* at = reinterpret_cast<const std::uint32_t*>(v) + (j * 8 + 2 * t) * stride + g;
#pragma unroll
    for (int n = 0; n < kOutTiles; ++n) {
      std::uint32_t x0 = at[n * 8], x1 = at[n * 8 + stride];
      if (kSelect) {
        x0 &= ~not_finite<S>(x0);
        x1 &= ~not_finite<S>(x1);
      }
      multiply_split<false>(out[n], a, split_bits(x0), split_bits(x1));
    }
  }
}

// Of 16 keys and 16 columns: two tiles of the output.
template <class S>
__device__ std::uint32_t values16_at(const S* v, std::int32_t stride) {
  const int lane = threadIdx.x % kWarp;
  return shared_address(v + (lane % 8 + lane / 8 % 2 * 8) * stride + lane / 16 * 8);
}

template <bool kSelect, class S, int kTiles, int kOutTiles>
__device__ void add_products16(float (&out)[kOutTiles][4], const float (&p)[kTiles][4], const S* v,
                               std::int32_t stride) {
  const std::uint32_t at = values16_at(v, stride);
#pragma unroll
  for (int j = 0; j < kTiles; j += 2) {
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
      load_matrices_transposed(b, at + (j * 8 * stride + n * 8) * sizeof(S));
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

// out += p v, of the warp's rows and 8 kTiles staged rows. kSelect: what is not finite counts as 0.
template <bool kSelect, class S, int kTiles, int kOutTiles>
__device__ void add_products(float (&out)[kOutTiles][4], const float (&p)[kTiles][4], const S* v,
                             std::int32_t stride) {
  if constexpr (std::is_same_v<S, float>) {
    add_products32<kSelect>(out, p, v, stride);
  } else {
    add_products16<kSelect>(out, p, v, stride);
  }
}

// Counts, by the same products of ones, the values that are not finite and that a row sees. The
// first `columns`, a multiple of 16, are there.
template <class S, int kTiles, int kOutTiles>
__device__ void spoil(float (&out)[kOutTiles][4], const float (&p)[kTiles][4], const S* v,
                      std::int32_t stride, std::int32_t columns) {
  // Else the compiler keeps what add_products() has read, in more registers than there are.
  asm volatile("" ::: "memory");
  const int lane = threadIdx.x % kWarp, t = lane % 4, g = lane / 4;
#pragma unroll 1  // it is rare: small rather than fast
  for (int n = 0; n < kOutTiles && n * 8 < columns; n += 2) {
    float count[2][4] = {};
#pragma unroll
    for (int j = 0; j < kTiles; j += 2) {
      float sees[2][4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        sees[0][i] = one_if_visible(p[j][i]);
        sees[1][i] = one_if_visible(p[j + 1][i]);
      }
      if constexpr (std::is_same_v<S, float>) {
#pragma unroll
        for (int jj = 0; jj < 2; ++jj) {
          const std::uint32_t a[4] = {__float_as_uint(sees[jj][0]), __float_as_uint(sees[jj][2]),
                                      __float_as_uint(sees[jj][1]), __float_as_uint(sees[jj][3])};
          const auto* at = reinterpret_cast<const std::uint32_t*>(v) +
                           ((j + jj) * 8 + 2 * t) * stride + g + n * 8;
          const std::uint32_t one = __float_as_uint(1.0f);
#pragma unroll
          for (int nn = 0; nn < 2; ++nn) {
            multiply(count[nn], a, not_finite<S>(at[nn * 8]) & one,
                     not_finite<S>(at[nn * 8 + stride]) & one);
          }
        }
      } else {
        const std::uint32_t a[4] = {
            pack<S>(sees[0][0], sees[0][1]), pack<S>(sees[0][2], sees[0][3]),
            pack<S>(sees[1][0], sees[1][1]), pack<S>(sees[1][2], sees[1][3])};
        std::uint32_t b[4];
        load_matrices_transposed(b, values16_at(v, stride) + (j * 8 * stride + n * 8) * sizeof(S));
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

// --- the host ---

// Whether every row of an array begins at a multiple of `bytes`, and is as long.
bool aligned(const void* data, const assay_stride& s, std::int64_t width, std::int64_t element,
             std::int64_t bytes) {
  const std::int64_t n = bytes / element;
  return reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(bytes) == 0 &&
         s.b % n == 0 && s.h % n == 0 && s.n % n == 0 && width % n == 0;
}

}  // namespace
