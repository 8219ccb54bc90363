// Sample entrant of assay, not a model's answer: fast and correct. A thread takes a tile of about
// 250 queries of one head and passes over the keys once, 64 at a time: they are packed transposed
// for the scores, whose lanes are keys, and values row by row for the output, whose lanes are head
// dimensions. Six queries at a time go through scores, weights and output while everything is in
// the first-level cache. The keys that a query sees are one range: a product runs over the range
// that six queries share and then over the rest of each, so that a masked value is never touched.
// fp32, bf16, f16, any head dimensions, windows; no extras.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "abi.h"

namespace {

#if defined(__AVX512F__)
constexpr int kWidth = 16, kColumns = 4;
#elif defined(__AVX__)
constexpr int kWidth = 8, kColumns = 2;
#else
constexpr int kWidth = 4, kColumns = 2;
#endif
using Vec [[gnu::vector_size(kWidth * 4)]] = float;
using Int [[gnu::vector_size(kWidth * 4)]] = std::int32_t;
using Bits [[gnu::vector_size(kWidth * 4)]] = std::uint32_t;

constexpr std::int64_t kBlock = 6, kQueries = 252, kKeys = 64, kVectors = kKeys / kWidth;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kLog2e = 1.44269504088896341f;

Vec splat(float x) { return x - Vec{}; }
Vec load(const float* p) { return *reinterpret_cast<const Vec*>(p); }
void store(float* p, Vec v) { *reinterpret_cast<Vec*>(p) = v; }
std::int64_t padded(std::int64_t n) { return (n + kWidth - 1) / kWidth * kWidth; }

template <int... I>
constexpr Int lane_numbers(std::integer_sequence<int, I...>) {
  return Int{I...};
}
constexpr Int kLane = lane_numbers(std::make_integer_sequence<int, kWidth>());

// e^x for x <= 0: 2^n times a polynomial of the rest; 0 below 2^-126; NaN stays.
Vec exp_of(Vec x) {
  const Vec y = x * kLog2e, rounder = splat(12582912.0f);  // 1.5 2^23: its last bit is worth 1
  const Vec n = y + rounder, f = (y - (n - rounder)) * 0.693147181f;
  Vec e = splat(1.0f / 5040);
  for (const float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
    e = e * f + c;
  e = reinterpret_cast<Vec>(reinterpret_cast<Bits>(e) + (reinterpret_cast<Bits>(n) << 23));
  e = y < -126.0f ? Vec{} : e;
  return y == y ? e : y;
}

// All lanes hold the largest of v.
Vec largest(Vec v) {
  for (int step = kWidth / 2; step > 0; step /= 2) {
    const Vec turned = __builtin_shuffle(v, kLane ^ step);
    v = turned > v ? turned : v;
  }
  return v;
}

// c[r][lanes] = c[r][lanes] keep[r] + sum of a[r][t] b[t][lanes] over t in [from, to); keep NULL:
// 0.
template <int R, int C>
void block(const float* a, std::int64_t a_row, const float* b, std::int64_t b_row,
           std::int64_t from, std::int64_t to, float* c, std::int64_t c_row, const Vec* keep) {
  Vec sum[R][C];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < C; ++v)
      sum[r][v] = keep == nullptr ? Vec{} : load(c + r * c_row + v * kWidth) * keep[r];
  }
  for (std::int64_t t = from; t < to; ++t) {
    Vec y[C];
    for (int v = 0; v < C; ++v) y[v] = load(b + t * b_row + v * kWidth);
    for (int r = 0; r < R; ++r) {
      const Vec x = splat(a[r * a_row + t]);
      for (int v = 0; v < C; ++v) sum[r][v] += x * y[v];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < C; ++v) store(c + r * c_row + v * kWidth, sum[r][v]);
  }
}

template <int R>
void product(const float* a, std::int64_t a_row, const float* b, std::int64_t lanes,
             std::int64_t from, std::int64_t to, float* c, const Vec* keep) {
  std::int64_t at = 0;
  for (; at + kColumns * kWidth <= lanes; at += kColumns * kWidth) {
    block<R, kColumns>(a, a_row, b + at, lanes, from, to, c + at, lanes, keep);
  }
  for (; at < lanes; at += kWidth)
    block<R, 1>(a, a_row, b + at, lanes, from, to, c + at, lanes, keep);
}

// A square of vectors, transposed by interleaving its halves once for each power of two.
void transpose(const float* from, std::int64_t from_row, float* to, std::int64_t to_row) {
  Vec x[kWidth], y[kWidth];
  const Int low = kLane / 2 + kLane % 2 * kWidth, high = low + kWidth / 2;
  for (int i = 0; i < kWidth; ++i) x[i] = load(from + i * from_row);
  for (int step = 1; step < kWidth; step *= 2) {
    for (int i = 0; i < kWidth / 2; ++i) {
      y[2 * i] = __builtin_shuffle(x[i], x[i + kWidth / 2], low);
      y[2 * i + 1] = __builtin_shuffle(x[i], x[i + kWidth / 2], high);
    }
    std::copy(y, y + kWidth, x);
  }
  for (int i = 0; i < kWidth; ++i) store(to + i * to_row, x[i]);
}

// --- element types
// ------------------------------------------------------------------------------------

struct Bf16 {
  std::uint16_t bits = 0;
  Bf16() = default;
  explicit Bf16(float f) {
    std::uint32_t u;
    std::memcpy(&u, &f, 4);
    bits = static_cast<std::uint16_t>(std::isnan(f) ? u >> 16 | 0x40u
                                                    : (u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  }
  explicit operator float() const {
    const std::uint32_t u = static_cast<std::uint32_t>(bits) << 16;
    float f;
    std::memcpy(&f, &u, 4);
    return f;
  }
};

// Calls body with a value of the element type.
template <class Body>
void with_type(std::int32_t dtype, const Body& body) {
  switch (dtype) {
    case ASSAY_F32: return body(float{});
    case ASSAY_BF16: return body(Bf16{});
    default: return body(_Float16{});
  }
}

// n rows as fp32, each filled up with zeros to whole vectors.
void read_rows(std::int32_t dtype, const void* data, std::int64_t at, std::int64_t step,
               std::int64_t n, std::int64_t D, float* out) {
  with_type(dtype, [&](auto zero) {
    const auto* x = static_cast<const decltype(zero)*>(data) + at;
    for (std::int64_t i = 0; i < n; ++i, x += step, out += padded(D)) {
      for (std::int64_t d = 0; d < D; ++d) out[d] = static_cast<float>(x[d]);
      std::fill(out + D, out + padded(D), 0.0f);
    }
  });
}

// --- a tile of queries
// --------------------------------------------------------------------------------

struct Problem {
  const fa_params& p;
  const void *q, *k, *v;
  void* o;
  float* lse;
  std::int64_t rows;  // queries of a tile, whole blocks
};

class Tile {
 public:
  static std::int64_t floats(const Problem& problem) {
    const std::int64_t D = padded(problem.p.D), Dv = padded(problem.p.Dv);
    return problem.rows * (D + Dv + kWidth + 1) + kKeys * (D + std::max(D, Dv) + kBlock) +
           2 * kWidth;
  }

  Tile(const Problem& problem, float* scratch) : a_(problem), p_(problem.p) {
    const auto take = [&](std::int64_t n) { return std::exchange(scratch, scratch + n); };
    D_ = padded(p_.D);
    Dv_ = padded(p_.Dv);
    q_ = take(a_.rows * D_);
    o_ = take(a_.rows * Dv_);
    sum_ = take(a_.rows * kWidth);
    kt_ = take(kKeys * D_);
    rows_of_tile_ = take(kKeys * std::max(D_, Dv_));
    s_ = take(kKeys * kBlock);
    max_ = take(a_.rows);
  }

  void run(std::int64_t b, std::int64_t h, std::int64_t first) {
    b_ = b;
    kv_ = h / (p_.Hq / p_.Hkv);
    first_ = first;
    n_ = std::min(a_.rows, p_.Nq - first);
    const std::int64_t blocks = (n_ + kBlock - 1) / kBlock, rows = blocks * kBlock;
    read_rows(p_.dtype, a_.q, b * p_.sq.b + h * p_.sq.h + first * p_.sq.n, p_.sq.n, n_, p_.D, q_);
    std::fill(q_ + n_ * D_, q_ + rows * D_, 0.0f);
    std::fill_n(o_, rows * Dv_, 0.0f);
    std::fill_n(sum_, rows * kWidth, 0.0f);
    std::fill_n(max_, rows, -kInf);
    const std::int64_t end = hi(n_ - 1);
    for (std::int64_t j = lo(0) / kKeys * kKeys; j < end; j += kKeys)
      keys(j, std::min(kKeys, p_.Nk - j), rows);
    write(h);
  }

 private:
  // The keys [lo, hi) are visible to a row of the tile; rows past its end see what the last one
  // does.
  std::int64_t diagonal(std::int64_t row) const {
    return first_ + std::min(row, n_ - 1) + p_.Nk - p_.Nq;
  }
  std::int64_t lo(std::int64_t row) const {
    return p_.window > 0 ? std::clamp<std::int64_t>(diagonal(row) - p_.window + 1, 0, p_.Nk) : 0;
  }
  std::int64_t hi(std::int64_t row) const {
    return p_.causal != 0 ? std::clamp<std::int64_t>(diagonal(row) + 1, 0, p_.Nk) : p_.Nk;
  }

  void keys(std::int64_t j, std::int64_t n, std::int64_t rows) {
    read_rows(p_.dtype, a_.k, b_ * p_.sk.b + kv_ * p_.sk.h + j * p_.sk.n, p_.sk.n, n, p_.D,
              rows_of_tile_);
    std::fill(rows_of_tile_ + n * D_, rows_of_tile_ + kKeys * D_, 0.0f);
    for (std::int64_t c = 0; c < kKeys; c += kWidth) {
      for (std::int64_t d = 0; d < D_; d += kWidth)
        transpose(rows_of_tile_ + c * D_ + d, D_, kt_ + d * kKeys + c, kKeys);
    }
    read_rows(p_.dtype, a_.v, b_ * p_.sv.b + kv_ * p_.sv.h + j * p_.sv.n, p_.sv.n, n, p_.Dv,
              rows_of_tile_);
    for (std::int64_t row = 0; row < rows; row += kBlock) {
      const std::int64_t last = row + kBlock - 1;
      if (hi(last) <= j || lo(row) >= j + n) continue;
      const bool masked = lo(last) > j || hi(row) < j + kKeys;
      product<kBlock>(q_ + row * D_, D_, kt_, kKeys, 0, D_, s_, nullptr);
      Vec keep[kBlock];
      for (std::int64_t r = 0; r < kBlock; ++r)
        keep[r] = masked ? weights<true>(row, r, j) : weights<false>(row, r, j);
      values(row, j, n, masked, keep);
    }
  }

  // Products of one row become weights relative to its new maximum. Returns what old sums are worth
  // now. A NaN loses every comparison but stays in its weight, and so spoils the sum and the
  // output.
  template <bool kMasked>
  Vec weights(std::int64_t row, std::int64_t r, std::int64_t j) {
    float* s = s_ + r * kKeys;
    const Vec old = splat(max_[row + r]), scale = splat(p_.scale);
    const auto from = static_cast<std::int32_t>(lo(row + r) - j),
               to = static_cast<std::int32_t>(hi(row + r) - j);
    Vec x[kVectors], max = old;
    for (int v = 0; v < kVectors; ++v) {
      x[v] = load(s + v * kWidth) * scale;
      const Int key = kLane + v * kWidth;
      if (kMasked) x[v] = ((key >= from) & (key < to)) ? x[v] : splat(-kInf);
      max = x[v] > max ? x[v] : max;
    }
    max = largest(max);
    max_[row + r] = max[0];
    const Vec base =
        max == -kInf ? Vec{} : max;  // before the first visible key: -inf - 0, not -inf + inf
    const Vec keep = exp_of(old - base);
    Vec sum = load(sum_ + (row + r) * kWidth) * keep;
    for (int v = 0; v < kVectors; ++v) {
      x[v] = exp_of(x[v] - base);
      sum += x[v];
      store(s + v * kWidth, x[v]);
    }
    store(sum_ + (row + r) * kWidth, sum);
    return keep;
  }

  // First the keys that all rows of the block see, then the others of each row.
  void values(std::int64_t row, std::int64_t j, std::int64_t n, bool masked, const Vec* keep) {
    const std::int64_t from = std::clamp<std::int64_t>(lo(row + kBlock - 1) - j, 0, n);
    const std::int64_t to = std::clamp(hi(row) - j, from, n);
    product<kBlock>(s_, kKeys, rows_of_tile_, Dv_, from, to, o_ + row * Dv_, keep);
    const Vec all = splat(1.0f);
    for (std::int64_t r = 0; masked && r < kBlock; ++r) {
      const std::int64_t a = std::max<std::int64_t>(lo(row + r) - j, 0),
                         b = std::min(hi(row + r) - j, n);
      float* o = o_ + (row + r) * Dv_;
      if (a < std::min(b, from))
        product<1>(s_ + r * kKeys, kKeys, rows_of_tile_, Dv_, a, std::min(b, from), o, &all);
      if (std::max(a, to) < b)
        product<1>(s_ + r * kKeys, kKeys, rows_of_tile_, Dv_, std::max(a, to), b, o, &all);
    }
  }

  void write(std::int64_t h) {
    for (std::int64_t row = 0; row < n_; ++row) {
      float sum = 0;
      for (int lane = 0; lane < kWidth; ++lane) sum += sum_[row * kWidth + lane];
      const float factor = sum == 0 ? 0.0f : 1 / sum;
      const std::int64_t at = b_ * p_.so.b + h * p_.so.h + (first_ + row) * p_.so.n;
      with_type(p_.dtype, [&](auto zero) {
        using T = decltype(zero);
        T* o = static_cast<T*>(a_.o) + at;
        for (std::int64_t d = 0; d < p_.Dv; ++d) o[d] = static_cast<T>(o_[row * Dv_ + d] * factor);
      });
      if (a_.lse == nullptr) continue;
      a_.lse[(b_ * p_.Hq + h) * p_.Nq + first_ + row] =
          sum == 0 ? -kInf : max_[row] + std::log(sum);
    }
  }

  const Problem& a_;
  const fa_params& p_;
  std::int64_t D_ = 0, Dv_ = 0, b_ = 0, kv_ = 0, first_ = 0, n_ = 0;
  float *q_, *o_, *sum_, *kt_, *rows_of_tile_, *s_, *max_;
};

bool valid(const fa_params* p, const void* q, const void* k, const void* v, const void* o) {
  if (p == nullptr) return false;
  for (const std::int64_t n : {p->B, p->Hq, p->Hkv, p->Nq, p->Nk, p->D, p->Dv}) {
    if (n < 0) return false;
  }
  if (p->Hkv == 0 ? p->Hq != 0 : p->Hq % p->Hkv != 0) return false;
  const std::int64_t queries = p->B * p->Hq * p->Nq, keys = p->B * p->Hkv * p->Nk;
  return (q != nullptr || queries * p->D == 0) && (k != nullptr || keys * p->D == 0) &&
         (v != nullptr || keys * p->Dv == 0) && (o != nullptr || queries * p->Dv == 0);
}

}  // namespace

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  if (!valid(p, q, k, v, o)) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32 && p->dtype != ASSAY_BF16 && p->dtype != ASSAY_F16)
    return ASSAY_ENOTSUP;
  const std::int64_t heads = p->B * p->Hq;
  if (heads * p->Nq == 0) return ASSAY_OK;
  const std::int64_t tiles = (p->Nq + kQueries - 1) / kQueries, even = (p->Nq + tiles - 1) / tiles;
  const Problem problem{*p, q, k, v, o, lse, (even + kBlock - 1) / kBlock * kBlock};
  const auto threads = std::clamp<std::int64_t>(ctx->nthreads, 1, heads * tiles);
  const std::int64_t each = padded(Tile::floats(problem));
  const auto bytes = static_cast<std::size_t>(threads * each) * sizeof(float);
  auto* scratch = static_cast<float*>(ctx->alloc(ctx, bytes, 64, 0));
  if (scratch == nullptr) return ASSAY_ENOMEM;
  std::atomic<std::int64_t> next{0};
  const auto work = [&](std::int64_t thread) {
    Tile tile(problem, scratch + thread * each);
    for (std::int64_t job = next++; job < heads * tiles; job = next++) {
      const std::int64_t first =
          (tiles - 1 - job / heads) * problem.rows;  // the longest first, if causal
      if (first < p->Nq) tile.run(job % heads / p->Hq, job % heads % p->Hq, first);
    }
  };
  std::vector<std::thread> others;
  for (std::int64_t t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& t : others) t.join();
  ctx->free(ctx, scratch);
  return ASSAY_OK;
}
