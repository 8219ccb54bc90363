// Attention of 16 rows of a warp to keys in shared memory, by tf32 tensor cores. x = hi + lo, both
// tf32 (11 bits each, 22 of the 24 of fp32): hi hi' + hi lo' + lo hi' errs by some 2^-22 of each
// product, what fp32 does anyway. What is bf16 is tf32 as it is, and lo is 0.
#pragma once

#include <cstdint>

#include "common/async_copy.h"
#include "common/device.h"

namespace {

constexpr float kLn2 = 0.693147180559945f, kLog2E = 1.44269504088896f;

// The larger part of x, and the rest: of both the tensor cores read the upper 19 bits.
struct Split {
  std::uint32_t hi, lo;
};
template <bool kExact>
__device__ Split split(float x) {
  if (kExact) return {__float_as_uint(x), 0};
  std::uint32_t hi;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(hi) : "f"(x));
  return {hi, __float_as_uint(x - __uint_as_float(hi))};
}

__device__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Four tiles of 8 rows of 16 bytes; `address`: in shared memory, of the lane's row.
__device__ void load_matrices(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

__device__ void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                         std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A multiplicand of 16 rows and 8 columns.
template <bool kExact>
struct Rows16 {
  std::uint32_t hi[4], lo[4];
  __device__ void set(int i, float x) {
    const Split s = split<kExact>(x);
    hi[i] = s.hi;
    lo[i] = s.lo;
  }
};

// The products that matter, the small ones first.
template <bool kExactA, bool kExactB>
__device__ void multiply_split(float (&c)[4], const Rows16<kExactA>& a, const Split& b0,
                               const Split& b1) {
  if (!kExactA) multiply(c, a.lo, b0.hi, b1.hi);
  if (!kExactB) multiply(c, a.hi, b0.lo, b1.lo);
  multiply(c, a.hi, b0.hi, b1.hi);
}

// The same for scores. Tensor cores cut sums off instead of rounding them: of a score in the
// hundreds, whose terms have one sign, too much is lost for exp. So its long sum is one of fp32.
template <bool kExact>
__device__ void add_to_scores(float (&c)[4], const Rows16<kExact>& a, const Split& b0,
                              const Split& b1) {
  float part[4] = {};
  multiply_split<kExact, kExact>(part, a, b0, b1);
  for (int i = 0; i < 4; ++i) c[i] += part[i];
}

// The weight of a masked key where it shall be known: 0 as any other, but for its sign.
constexpr float kMaskedWeight = -0.0f;

// 16 rows of a warp and what they have seen of tiles of kKeys keys: the online softmax. A thread has
// columns 2t and 2t + 1 of rows g and g + 8: index 2 h + e of an accumulator, t = lane % 4, g = lane
// / 4. kOut: elements of an output row.
template <int kOut, int kKeys>
struct OnlineSoftmax {
  static constexpr int kKeyTiles = kKeys / 8, kOutTiles = kOut / 8;
  float p[kKeyTiles][4];  // scores, then weights
  float out[kOutTiles][4];
  float max[2], sum[2];  // sum: over the thread's columns

  __device__ OnlineSoftmax() {
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

  // Scores, in units of log 2 after `scale`, become weights relative to the running maximum.
  // visible(h, column) says which keys a row sees; kMarked: the weights of the others are
  // kMaskedWeight.
  template <bool kMarked, class Visible>
  __device__ void weigh(float scale, const Visible& visible) {
    const int t = threadIdx.x % 4;
    float keep[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float largest = max[h];
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = p[n][2 * h + e];
          x *= scale;
          // Selected, not added: what is masked may be NaN.
          if (!visible(h, n * 8 + 2 * t + e)) x = -INFINITY;
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
          if (kMarked && !visible(h, n * 8 + 2 * t + e)) x = kMaskedWeight;
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

  // The sums over all columns, in every thread of a row.
  __device__ void add_up_columns() {
#pragma unroll
    for (float& x : sum) {
      x += __shfl_xor_sync(kAll, x, 1);
      x += __shfl_xor_sync(kAll, x, 2);
    }
  }
};

// Those rows against keys and values in shared memory.
template <int kOut, int kKeys, bool kExact>
struct WarpRows : OnlineSoftmax<kOut, kKeys> {
  using Softmax = OnlineSoftmax<kOut, kKeys>;
  using Softmax::kKeyTiles, Softmax::kOutTiles, Softmax::p, Softmax::out;

  // `q`: the warp's rows; rows of q and k lie `stride` floats apart.
  __device__ void scores(const float* q, const float* k, int stride, int D) {
    const int lane = threadIdx.x % kWarp;
    std::uint32_t a_at = shared_address(q + lane % 16 * stride + lane / 16 * 4);
    std::uint32_t b_at = shared_address(k + (lane / 16 * 8 + lane % 8) * stride + lane / 8 % 2 * 4);
    const std::uint32_t two_tiles = 16 * stride * 4;
#pragma unroll
    for (auto& tile : p) {
#pragma unroll
      for (float& x : tile) x = 0;
    }
#pragma unroll 2
    for (int d = 0; d < D; d += 8) {
      Rows16<kExact> a;
      std::uint32_t raw[4];
      load_matrices(raw, a_at);
#pragma unroll
      for (int i = 0; i < 4; ++i) a.set(i, __uint_as_float(raw[i]));
#pragma unroll
      for (int n = 0; n < kKeyTiles; n += 2) {
        load_matrices(raw, b_at + n / 2 * two_tiles);
        Split b[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) b[i] = split<kExact>(__uint_as_float(raw[i]));
        add_to_scores<kExact>(p[n], a, b[0], b[1]);
        add_to_scores<kExact>(p[n + 1], a, b[2], b[3]);
      }
      a_at += 32;
      b_at += 32;
    }
  }

  // visible(h, column) says which keys a row sees where it is `masked`; else it sees all.
  template <class Visible>
  __device__ void weights(float scale, bool masked, const Visible& visible) {
    this->template weigh<false>(scale,
                                [&](int h, int column) { return !masked || visible(h, column); });
  }

  // The multiplicand's columns t and t + 4 are called keys 2t and 2t + 1: those of the
  // accumulators, so that weights need not move. Rows of v lie kOut + 4 floats apart.
  __device__ void add_values(const float* v) {
    constexpr int kStride = kOut + 4;
    const int lane = threadIdx.x % kWarp, t = lane % 4, g = lane / 4;
#pragma unroll
    for (int j = 0; j < kKeyTiles; ++j) {
      Rows16<false> a;
      a.set(0, p[j][0]);
      a.set(1, p[j][2]);
      a.set(2, p[j][1]);
      a.set(3, p[j][3]);
      const float* at = v + (j * 8 + 2 * t) * kStride + g;
#pragma unroll
      for (int n = 0; n < kOutTiles; ++n) {
        multiply_split<false, kExact>(out[n], a, split<kExact>(at[n * 8]),
                                      split<kExact>(at[n * 8 + kStride]));
      }
    }
  }
};

}  // namespace
