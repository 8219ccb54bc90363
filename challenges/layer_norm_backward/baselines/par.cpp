// The expert implementation for a CPU.
//
// Napkin arithmetic of the backward pass, fp32, per element: 12 bytes (read x and dy, write dx) and
// about 6 flops in the first sweep plus 11 in the second. Two cores copy at about 40 GB/s, so an
// element costs 0.3 ns of memory and 0.05 ns of arithmetic at 16 lanes: bound by memory. So x and
// dy come from memory once; a row (16 KiB at D = 4096) is still in the L1 or L2 cache when the
// second sweep reads it again, and dx goes straight to memory: large outputs are written with
// non-temporal stores, which saves reading the lines first (16 -> 12 bytes per element).
//
// dgamma and dbeta: each thread sums its contiguous rows into partials of its own (8 D bytes,
// L1/L2), in fp32 over at most 64 rows and in fp64 across those; the partials are added in order at
// the end, so the result does not depend on timing. Cache: mean and reciprocal standard deviation,
// 8 bytes a row.
//
// Measured on two cores of an EPYC: 2.8 ms for 8192 x 768, 5.7 ms for 4096 x 4096 and 5.0 ms for
// 65536 x 256, 0.97 to 1.23 of the copy bandwidth beside it (the last-level cache keeps a part).
// Vectors are as wide as the target's registers: with AVX2, 16 lanes took half as long again as 8.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__AVX__)
#include <immintrin.h>
#endif

#include "abi.h"
#include "shared/baselines/threads.h"

namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#else
constexpr int kLanes = 8;
#endif
typedef float Vec __attribute__((vector_size(4 * kLanes)));
typedef std::uint32_t VecU __attribute__((vector_size(4 * kLanes)));
typedef std::uint16_t VecH __attribute__((vector_size(2 * kLanes)));

constexpr std::int64_t kRowsPerPartial = 64;

struct Statistics {
  float mean, rstd;
};

template <class T>
T load_as(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// Elements of fp32 or bf16 memory as fp32.
struct F32 {
  using Element = float;
  static Vec load(const Element* p) { return load_as<Vec>(p); }
  static float load1(const Element* p) { return *p; }
  static void store(Element* p, Vec v) { std::memcpy(p, &v, sizeof v); }
  static void store1(Element* p, float v) { *p = v; }
};

struct BF16 {
  using Element = std::uint16_t;
  static Vec load(const Element* p) {
    return std::bit_cast<Vec>(__builtin_convertvector(load_as<VecH>(p), VecU) << 16);
  }
  static float load1(const Element* p) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(*p) << 16);
  }
  static void store(Element* p, Vec v) {
    const VecU u = std::bit_cast<VecU>(v);
    const VecU rounded = v == v ? u + 0x7fffu + ((u >> 16) & 1u) : (u | 0x400000u);
    const VecH h = __builtin_convertvector(rounded >> 16, VecH);
    std::memcpy(p, &h, sizeof h);
  }
  static void store1(Element* p, float v) {
    const auto u = std::bit_cast<std::uint32_t>(v);
    *p = static_cast<std::uint16_t>(
        (std::isnan(v) ? u | 0x400000u : u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
};

float sum(Vec v) {
  float s = 0;
  for (int i = 0; i < kLanes; ++i) s += v[i];
  return s;
}

// Additions in fp32 before a sum goes on in fp64, so that wide rows are as exact as narrow ones.
constexpr int kChain = 32;

// Sum over a row of f(vector of x) with four independent chains.
template <class Type, class F, class F1>
double row_sum(const typename Type::Element* x, std::int64_t D, F f, F1 f1) {
  constexpr std::int64_t kStep = 4 * kLanes;
  double total = 0;
  std::int64_t i = 0;
  while (i + kStep <= D) {
    Vec a[4] = {};
    for (const std::int64_t end = std::min(D - kStep, i + (kChain - 1) * kStep); i <= end;
         i += kStep) {
      for (int k = 0; k < 4; ++k) a[k] += f(Type::load(x + i + k * kLanes));
    }
    total += sum((a[0] + a[1]) + (a[2] + a[3]));
  }
  for (; i < D; ++i) total += f1(Type::load1(x + i));
  return total;
}

// For rows whose squares overflow fp32 (and rows with NaN or Inf).
template <class Type>
Statistics wide_statistics(const typename Type::Element* x, std::int64_t D, float eps) {
  double mean = 0, var = 0;
  for (std::int64_t i = 0; i < D; ++i) mean += Type::load1(x + i);
  mean /= static_cast<double>(D);
  for (std::int64_t i = 0; i < D; ++i)
    var += (Type::load1(x + i) - mean) * (Type::load1(x + i) - mean);
  return {static_cast<float>(mean),
          static_cast<float>(1 / std::sqrt(var / static_cast<double>(D) + eps))};
}

template <class Type>
Statistics statistics(const typename Type::Element* x, std::int64_t D, float eps) {
  // Sums of differences from the first element: no cancellation for rows far from zero.
  const float shift = Type::load1(x);
  const double offset =
      row_sum<Type>(
          x, D, [=](Vec v) { return v - shift; }, [=](float v) { return v - shift; }) /
      static_cast<double>(D);
  const float mean = static_cast<float>(shift + offset);
  const double var = row_sum<Type>(
      x, D, [=](Vec v) { return (v - mean) * (v - mean); },
      [=](float v) { return (v - mean) * (v - mean); });
  if (!std::isfinite(var)) return wide_statistics<Type>(x, D, eps);
  // The first sum is rounded by its size, which is that of the first element: an outlier spoils it.
  // What is left around the mean is small, and its sum exact enough to take the slip out again.
  const double slip =
      row_sum<Type>(
          x, D, [=](Vec v) { return v - mean; }, [=](float v) { return v - mean; }) /
      static_cast<double>(D);
  return {static_cast<float>(mean + slip),
          static_cast<float>(
              1 / std::sqrt(std::max(var / static_cast<double>(D) - slip * slip, 0.0) + eps))};
}

template <class Type>
void forward_rows(const ln_params& p, const typename Type::Element* x, const float* gamma,
                  const float* beta, typename Type::Element* y, Statistics* cache,
                  std::int64_t begin, std::int64_t end) {
  for (std::int64_t r = begin; r < end; ++r) {
    const auto* row = x + r * p.D;
    auto* out = y + r * p.D;
    const Statistics s = cache[r] = statistics<Type>(row, p.D, p.eps);
    std::int64_t i = 0;
    for (; i + kLanes <= p.D; i += kLanes) {
      const Vec xhat = (Type::load(row + i) - s.mean) * s.rstd;
      Type::store(out + i, xhat * load_as<Vec>(gamma + i) + load_as<Vec>(beta + i));
    }
    for (; i < p.D; ++i)
      Type::store1(out + i, (Type::load1(row + i) - s.mean) * s.rstd * gamma[i] + beta[i]);
  }
}

// One thread's column sums.
struct Partial {
  float* dgamma;  // [D], at most kRowsPerPartial rows
  float* dbeta;
  double* total_dgamma;  // [D]
  double* total_dbeta;
};

void flush(const Partial& p, std::int64_t D) {
  for (std::int64_t i = 0; i < D; ++i) {
    p.total_dgamma[i] += p.dgamma[i];
    p.total_dbeta[i] += p.dbeta[i];
    p.dgamma[i] = p.dbeta[i] = 0;
  }
}

struct Projection {
  float mean_g, mean_gx;
};

// First sweep: the two means.
template <class Type>
Projection first_sweep(const typename Type::Element* dy, const typename Type::Element* x,
                       const float* gamma, Statistics s, std::int64_t D) {
  constexpr std::int64_t kStep = 2 * kLanes;
  double g_total = 0, gx_total = 0;
  std::int64_t i = 0;
  while (i + kStep <= D) {
    Vec g_sum[2] = {}, gx_sum[2] = {};
    for (const std::int64_t end = std::min(D - kStep, i + (2 * kChain - 1) * kStep); i <= end;
         i += kStep) {
      for (int k = 0; k < 2; ++k) {
        const std::int64_t at = i + k * kLanes;
        const Vec g = Type::load(dy + at) * load_as<Vec>(gamma + at);
        g_sum[k] += g;
        gx_sum[k] += g * ((Type::load(x + at) - s.mean) * s.rstd);
      }
    }
    g_total += sum(g_sum[0] + g_sum[1]);
    gx_total += sum(gx_sum[0] + gx_sum[1]);
  }
  for (; i < D; ++i) {
    const float g = Type::load1(dy + i) * gamma[i];
    g_total += g;
    gx_total += g * ((Type::load1(x + i) - s.mean) * s.rstd);
  }
  const auto n = static_cast<double>(D);
  return {static_cast<float>(g_total / n), static_cast<float>(gx_total / n)};
}

template <bool kStream>
void store_dx(float* p, Vec v) {
#if defined(__AVX512F__)
  if constexpr (kStream) return _mm512_stream_ps(p, std::bit_cast<__m512>(v));
#elif defined(__AVX__)
  if constexpr (kStream) return _mm256_stream_ps(p, std::bit_cast<__m256>(v));
#endif
  F32::store(p, v);
}

template <bool kStream>
void store_dx(std::uint16_t* p, Vec v) {
  BF16::store(p, v);
}

// Second sweep: dx and this row's share of dgamma and dbeta, with the row still in cache. Memory
// has only stores to do meanwhile, so the next row is fetched ahead into the L2 cache.
template <class Type, bool kStream>
void second_sweep(const typename Type::Element* dy, const typename Type::Element* x,
                  const float* gamma, Statistics s, Projection m,
                  const typename Type::Element* dres, std::int64_t D, typename Type::Element* dx,
                  const Partial& partial) {
  constexpr int kIntoL2 = 2;
  std::int64_t i = 0;
  for (; i + kLanes <= D; i += kLanes) {
    __builtin_prefetch(x + D + i, 0, kIntoL2);
    __builtin_prefetch(dy + D + i, 0, kIntoL2);
    // All loads come first: their addresses often equal those of the stores modulo the page size,
    // and the processor would take them for dependent.
    const Vec g = load_as<Vec>(gamma + i);
    Vec dgamma = load_as<Vec>(partial.dgamma + i), dbeta = load_as<Vec>(partial.dbeta + i);
    const Vec xhat = (Type::load(x + i) - s.mean) * s.rstd, d = Type::load(dy + i);
    dgamma += d * xhat;
    dbeta += d;
    if (dx != nullptr) {
      Vec out = s.rstd * (d * g - m.mean_g - xhat * m.mean_gx);
      if (dres != nullptr) out += Type::load(dres + i);
      store_dx<kStream>(dx + i, out);
    }
    F32::store(partial.dgamma + i, dgamma);
    F32::store(partial.dbeta + i, dbeta);
  }
  for (; i < D; ++i) {
    const float xhat = (Type::load1(x + i) - s.mean) * s.rstd, d = Type::load1(dy + i);
    partial.dgamma[i] += d * xhat;
    partial.dbeta[i] += d;
    if (dx == nullptr) continue;
    const float out = s.rstd * (d * gamma[i] - m.mean_g - xhat * m.mean_gx);
    Type::store1(dx + i, dres != nullptr ? out + Type::load1(dres + i) : out);
  }
}

struct Backward {
  const ln_params& p;
  const void *dy, *x;
  const float* gamma;
  const Statistics* cache;
  const void* dres;
  void* dx;
};

template <class Type>
void backward_rows(const Backward& b, const Partial& partial, std::int64_t begin,
                   std::int64_t end) {
  using E = typename Type::Element;
  const std::int64_t D = b.p.D;
  constexpr std::int64_t kBeyondCaches = 4 << 20;  // elements
  const bool stream = std::is_same_v<Type, F32> && D % kLanes == 0 &&
                      b.p.rows * D >= kBeyondCaches &&
                      reinterpret_cast<std::uintptr_t>(b.dx) % 64 == 0;
  for (std::int64_t r = begin; r < end; ++r) {
    const E* dy = static_cast<const E*>(b.dy) + r * D;
    const E* x = static_cast<const E*>(b.x) + r * D;
    const E* dres = b.dres != nullptr ? static_cast<const E*>(b.dres) + r * D : nullptr;
    const Projection m = first_sweep<Type>(dy, x, b.gamma, b.cache[r], D);
    E* dx = b.dx != nullptr ? static_cast<E*>(b.dx) + r * D : nullptr;
    if (stream) {
      second_sweep<Type, true>(dy, x, b.gamma, b.cache[r], m, dres, D, dx, partial);
    } else {
      second_sweep<Type, false>(dy, x, b.gamma, b.cache[r], m, dres, D, dx, partial);
    }
    if ((r - begin) % kRowsPerPartial == kRowsPerPartial - 1) flush(partial, D);
  }
  flush(partial, D);
#if defined(__AVX__)
  if (stream) _mm_sfence();
#endif
}

bool valid(const ln_params* p) {
  return p != nullptr && p->size == sizeof(ln_params) && p->rows >= 0 && p->D >= 0 && p->eps >= 0;
}

int check(const ln_params* p, bool pointers_present) {
  if (!valid(p) || (p->rows * p->D > 0 && !pointers_present)) return ASSAY_EINVAL;
  return p->dtype == ASSAY_F32 || p->dtype == ASSAY_BF16 ? ASSAY_OK : ASSAY_ENOTSUP;
}

int thread_count(const assay_ctx* ctx, const ln_params& p) {
  constexpr std::int64_t kWorthAThread = 1 << 16;  // elements
  return static_cast<int>(std::clamp<std::int64_t>(std::min(p.rows, p.rows * p.D / kWorthAThread),
                                                   1, std::max(ctx->nthreads, 1)));
}

// work(t, begin, end) on contiguous shares of the rows.
template <class Work>
void share_rows(std::int64_t rows, int threads, Work work) {
  on_threads(threads, [&](std::int64_t t) {
    work(static_cast<int>(t), rows * t / threads, rows * (t + 1) / threads);
  });
}

int backward(assay_ctx* ctx, const Backward& b, float* dgamma, float* dbeta) {
  const std::int64_t D = b.p.D;
  const int threads = thread_count(ctx, b.p);
  const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(D, 1)) * 24;
  auto* memory =
      static_cast<char*>(ctx->alloc(ctx, bytes * static_cast<std::size_t>(threads), 64, 0));
  if (memory == nullptr) return ASSAY_ENOMEM;
  std::memset(memory, 0, bytes * static_cast<std::size_t>(threads));
  const auto partial = [&](int t) {
    auto* doubles = reinterpret_cast<double*>(memory + bytes * static_cast<std::size_t>(t));
    auto* floats = reinterpret_cast<float*>(doubles + 2 * D);
    return Partial{floats, floats + D, doubles, doubles + D};
  };
  if (D > 0) {
    share_rows(b.p.rows, threads, [&](int t, std::int64_t begin, std::int64_t end) {
      if (b.p.dtype == ASSAY_F32) {
        backward_rows<F32>(b, partial(t), begin, end);
      } else {
        backward_rows<BF16>(b, partial(t), begin, end);
      }
    });
  }
  for (std::int64_t i = 0; i < D; ++i) {
    double g = 0, s = 0;
    for (int t = 0; t < threads; ++t) {
      g += partial(t).total_dgamma[i];
      s += partial(t).total_dbeta[i];
    }
    if (dgamma != nullptr) dgamma[i] = static_cast<float>(g);
    if (dbeta != nullptr) dbeta[i] = static_cast<float>(s);
  }
  ctx->free(ctx, memory);
  return ASSAY_OK;
}

}  // namespace

extern "C" std::size_t ln_cache_bytes(const ln_params* p) {
  return valid(p) ? static_cast<std::size_t>(p->rows) * sizeof(Statistics) : 0;
}

extern "C" int ln_forward(assay_ctx* ctx, const ln_params* p, const void* x, const float* gamma,
                          const float* beta, void* y, void* cache) {
  const bool present =
      x != nullptr && gamma != nullptr && beta != nullptr && y != nullptr && cache != nullptr;
  if (const int status = check(p, present); status != ASSAY_OK) return status;
  if (p->D == 0) return ASSAY_OK;
  share_rows(p->rows, thread_count(ctx, *p), [&](int, std::int64_t begin, std::int64_t end) {
    auto* statistics = static_cast<Statistics*>(cache);
    if (p->dtype == ASSAY_F32) {
      forward_rows<F32>(*p, static_cast<const float*>(x), gamma, beta, static_cast<float*>(y),
                        statistics, begin, end);
    } else {
      forward_rows<BF16>(*p, static_cast<const std::uint16_t*>(x), gamma, beta,
                         static_cast<std::uint16_t*>(y), statistics, begin, end);
    }
  });
  return ASSAY_OK;
}

extern "C" int ln_backward(assay_ctx* ctx, const ln_params* p, const void* dy, const void* x,
                           const float* gamma, const void* cache, void* dx, float* dgamma,
                           float* dbeta) {
  const bool present = dy != nullptr && x != nullptr && gamma != nullptr && cache != nullptr;
  if (const int status = check(p, present); status != ASSAY_OK) return status;
  return backward(ctx, {*p, dy, x, gamma, static_cast<const Statistics*>(cache), nullptr, dx},
                  dgamma, dbeta);
}

extern "C" int ln_backward_residual(assay_ctx* ctx, const ln_params* p, const void* dy,
                                    const void* x, const float* gamma, const void* cache,
                                    const void* dres, void* dx, float* dgamma, float* dbeta) {
  const bool present =
      dy != nullptr && x != nullptr && gamma != nullptr && cache != nullptr && dres != nullptr;
  if (const int status = check(p, present); status != ASSAY_OK) return status;
  return backward(ctx, {*p, dy, x, gamma, static_cast<const Statistics*>(cache), dres, dx}, dgamma,
                  dbeta);
}
