// Expert forward attention for x86 cores with wide vectors.
//
// Arithmetic: 4 D flops per visible pair of query and key (two products) and one exponential; bytes are
// O(N D) against O(N^2 D) flops, so the multipliers are the limit from N of a few hundred on. At D = 64
// an exponential of 12 instructions a vector stands beside 128 multiply-adds: 10 % on top at best.
//
// Lanes are queries. 64 query rows are packed once, transposed, as [D][64]; then both products have
// one form: c[r][64 lanes] += a[r, t] * b[t][64 lanes], with a scalar of K or V broadcast straight from the
// caller's memory. Nothing of K or V is packed or transposed, whatever the strides; the maximum and
// the sum over keys are vertical, one per lane; scores and outputs of a tile stay in L1 and L2. Register blocks
// of 6 x 4 vectors (6 x 2 without AVX-512) keep the multipliers busy. Query heads that share a key head are rows
// of the same tile when there are few queries. A tile that lies fully inside the visible range skips all
// masking; keys that nobody in a tile sees are never touched.
//
// Measured on two cores of an EPYC with AVX-512: 146 GF/s on 8 heads of 1024 x 64 causal, 171 on 4 of 4096 x 64, 0.72 and
// 0.84 of OpenBLAS's sgemm beside it; 0.87 with D = 128.
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

constexpr std::int64_t kRows = 64;  // queries of a tile, all lanes of it
constexpr std::int64_t kKeys = 64;  // keys of a tile
constexpr int kVectors = kRows / kWidth, kBlock = 6;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kLog2e = 1.44269504088896341f;
constexpr double kLn2 = 0.693147180559945309;

Vec splat(float x) { return x - Vec{}; }
Vec load(const float* p) { return *reinterpret_cast<const Vec*>(p); }
void store(float* p, Vec v) { *reinterpret_cast<Vec*>(p) = v; }
Vec select(Int mask, Vec a, Vec b) { return mask ? a : b; }

// 2^x within 2 ulp for x <= 0; 0 below -126; NaN stays.
Vec exp2_of(Vec x) {
  const Vec magic = splat(12582912.0f);  // 1.5 2^23: adding it rounds to an integer
  const Vec shifted = x + magic;
  const Vec f = x - (shifted - magic);
  Vec y = splat(1.53533906e-4f);
  y = y * f + splat(1.33988744e-3f);
  y = y * f + splat(9.61817801e-3f);
  y = y * f + splat(5.55036031e-2f);
  y = y * f + splat(2.40226507e-1f);
  y = y * f + splat(6.93147182e-1f);
  y = y * f + splat(1.0f);
  const Int exponent = reinterpret_cast<Int>(shifted) << 23;
  const Vec scaled = reinterpret_cast<Vec>(reinterpret_cast<Int>(y) + exponent);
  return select(x < splat(-126.0f), Vec{}, select(x == x, scaled, x));
}

// c[r][lanes] (=|+=) sum_t a[r * a_row + t * a_step] * b[t][lanes] for R rows; with kAdd, c is first
// multiplied by `keep` [lanes].
template <int R, bool kAdd>
void block(const float* a, std::int64_t a_row, std::int64_t a_step, const float* b,
           std::int64_t steps, float* c, const float* keep) {
  for (std::int64_t lane = 0; lane < kRows; lane += kColumns * kWidth) {
    Vec sum[R][kColumns];
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < kColumns; ++v) {
        const std::int64_t at = lane + v * kWidth;
        sum[r][v] = kAdd ? load(c + r * kRows + at) * load(keep + at) : Vec{};
      }
    }
    const float* row = b + lane;
    const float* x = a;
    for (std::int64_t t = 0; t < steps; ++t, row += kRows, x += a_step) {
      Vec y[kColumns];
      for (int v = 0; v < kColumns; ++v) y[v] = load(row + v * kWidth);
      for (int r = 0; r < R; ++r) {
        const Vec s = splat(x[r * a_row]);
        for (int v = 0; v < kColumns; ++v) sum[r][v] += s * y[v];
      }
    }
    for (int r = 0; r < R; ++r) {
      for (int v = 0; v < kColumns; ++v) store(c + r * kRows + lane + v * kWidth, sum[r][v]);
    }
  }
}

template <bool kAdd>
void product(const float* a, std::int64_t a_row, std::int64_t a_step, const float* b,
             std::int64_t steps, float* c, std::int64_t rows, const float* keep) {
  std::int64_t r = 0;
  for (; r + kBlock <= rows; r += kBlock) {
    block<kBlock, kAdd>(a + r * a_row, a_row, a_step, b, steps, c + r * kRows, keep);
  }
  const float* rest = a + r * a_row;
  float* out = c + r * kRows;
  switch (rows - r) {
    case 5: block<5, kAdd>(rest, a_row, a_step, b, steps, out, keep); break;
    case 4: block<4, kAdd>(rest, a_row, a_step, b, steps, out, keep); break;
    case 3: block<3, kAdd>(rest, a_row, a_step, b, steps, out, keep); break;
    case 2: block<2, kAdd>(rest, a_row, a_step, b, steps, out, keep); break;
    case 1: block<1, kAdd>(rest, a_row, a_step, b, steps, out, keep); break;
    default: break;
  }
}

// --- half-width types -------------------------------------------------------------------------------

float from_bits(std::uint32_t u) {
  float f;
  std::memcpy(&f, &u, 4);
  return f;
}

std::uint32_t to_bits(float f) {
  std::uint32_t u;
  std::memcpy(&u, &f, 4);
  return u;
}

float widen(std::uint16_t h, std::int32_t dtype) {
  if (dtype == ASSAY_BF16) return from_bits(static_cast<std::uint32_t>(h) << 16);
  const std::uint32_t sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
  if (rest >= 0x7c00u) return from_bits(sign | 0x7f800000u | (rest & 0x3ffu) << 13);
  if (rest >= 0x400u) return from_bits(sign | ((rest << 13) + 0x38000000u));
  return from_bits(sign | to_bits(static_cast<float>(rest) * 0x1p-24f));
}

std::uint16_t narrow(float f, std::int32_t dtype) {
  const std::uint32_t u = to_bits(f), rest = u & 0x7fffffffu, sign = u >> 16 & 0x8000u;
  if (dtype == ASSAY_BF16) {
    if (rest > 0x7f800000u) return static_cast<std::uint16_t>(u >> 16 | 0x40u);
    return static_cast<std::uint16_t>((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
  }
  if (rest > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (rest >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (rest < 0x38800000u) {
    return static_cast<std::uint16_t>(sign | (to_bits(from_bits(rest) + 0.5f) - 0x3f000000u));
  }
  return static_cast<std::uint16_t>(sign |
                                    ((rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13));
}

// --- one tile of queries ------------------------------------------------------------------------------

struct Problem {
  const fa_params& p;
  const fa_extra& e;
  const void *q, *k, *v;
  void* o;
  float* lse;
  std::int64_t lse_head;  // elements of lse from head to head
  const fa_bias* shape;   // of the bias
  const float* bias;
  std::int64_t group = 1, tiles = 0;  // query heads of a key head, query tiles of a key head
};

// Rows of K or V as fp32: the caller's own memory, or a converted copy.
struct Floats {
  const float* data;
  std::int64_t step;
};

Floats rows_of(const void* data, std::int64_t at, std::int64_t step, std::int64_t n, std::int64_t D,
               std::int32_t dtype, float* copy) {
  if (dtype == ASSAY_F32) return {static_cast<const float*>(data) + at, step};
  const auto* x = static_cast<const std::uint16_t*>(data) + at;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t d = 0; d < D; ++d) copy[i * D + d] = widen(x[i * step + d], dtype);
  }
  return {copy, D};
}

bool all_finite(Floats x, std::int64_t n, std::int64_t D) {
  float zero = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t d = 0; d < D; ++d) zero += x.data[i * x.step + d] * 0.0f;
  }
  return zero == 0;
}

class Tile {
 public:
  static std::size_t floats(const fa_params& p) {
    const std::int64_t copies = p.dtype == ASSAY_F32 ? 0 : kKeys * (p.D + p.Dv);
    return static_cast<std::size_t>((p.D + p.Dv + kKeys) * kRows + copies + 8 * kRows);
  }

  Tile(const Problem& problem, float* scratch) : problem_(problem), p_(problem.p), e_(problem.e) {
    const auto take = [&](std::int64_t n) { return std::exchange(scratch, scratch + n); };
    q_ = take(p_.D * kRows);
    o_ = take(p_.Dv * kRows);
    s_ = take(kKeys * kRows);
    max_ = take(kRows);
    sum_ = take(kRows);
    keep_ = take(kRows);
    slope_ = take(kRows);
    lo_ = reinterpret_cast<std::int32_t*>(take(kRows));
    hi_ = reinterpret_cast<std::int32_t*>(take(kRows));
    diagonal_ = take(kRows);
    take(kRows);
    copy_ = scratch;
  }

  // Query rows first .. of key head kv; row r is query r % Nq of head kv * group + r / Nq.
  void run(std::int64_t b, std::int64_t kv, std::int64_t first) {
    b_ = b;
    kv_ = kv;
    first_ = first;
    rows_ = std::min(kRows, problem_.group * p_.Nq - first);
    L_ = e_.kv_len != nullptr ? e_.kv_len[b] : p_.Nk;
    pack_queries();
    std::fill_n(o_, p_.Dv * kRows, 0.0f);
    for (std::int64_t lane = 0; lane < kRows; ++lane) {
      const float sink = e_.sink != nullptr ? e_.sink[head(lane)] : -kInf;
      max_[lane] = sink * kLog2e;
      sum_[lane] = e_.sink != nullptr ? 1.0f : 0.0f;
    }
    for (std::int64_t j = least_lo_ / kKeys * kKeys; j < most_hi_; j += kKeys)
      keys(j, std::min(kKeys, L_ - j));
    write();
  }

 private:
  std::int64_t row(std::int64_t lane) const { return first_ + std::min(lane, rows_ - 1); }
  std::int64_t head(std::int64_t lane) const { return kv_ * problem_.group + row(lane) / p_.Nq; }
  std::int64_t query(std::int64_t lane) const { return row(lane) % p_.Nq; }

  void pack_queries() {
    // Scores come out in units of log 2, except where tanh needs them natural.
    const float scale = e_.softcap > 0 ? p_.scale / e_.softcap : p_.scale * kLog2e;
    least_lo_ = L_;
    most_hi_ = 0;
    most_lo_ = 0;
    least_hi_ = L_;
    for (std::int64_t lane = 0; lane < kRows; ++lane) {
      const std::int64_t at = b_ * p_.sq.b + head(lane) * p_.sq.h + query(lane) * p_.sq.n;
      if (p_.dtype == ASSAY_F32) {
        const float* x = static_cast<const float*>(problem_.q) + at;
        for (std::int64_t d = 0; d < p_.D; ++d) q_[d * kRows + lane] = x[d] * scale;
      } else {
        const auto* x = static_cast<const std::uint16_t*>(problem_.q) + at;
        for (std::int64_t d = 0; d < p_.D; ++d)
          q_[d * kRows + lane] = widen(x[d], p_.dtype) * scale;
      }
      const std::int64_t diagonal = query(lane) + L_ - p_.Nq;
      std::int64_t lo = 0, hi = L_;
      if (p_.causal != 0) hi = std::clamp<std::int64_t>(diagonal + 1, 0, L_);
      if (p_.window > 0) lo = std::clamp<std::int64_t>(diagonal - p_.window + 1, 0, L_);
      lo_[lane] = static_cast<std::int32_t>(lo);
      hi_[lane] = static_cast<std::int32_t>(hi);
      diagonal_[lane] = static_cast<float>(diagonal);
      slope_[lane] = e_.alibi != nullptr ? e_.alibi[head(lane)] * kLog2e : 0.0f;
      least_lo_ = std::min(least_lo_, lo);
      most_lo_ = std::max(most_lo_, lo);
      least_hi_ = std::min(least_hi_, hi);
      most_hi_ = std::max(most_hi_, hi);
    }
  }

  void keys(std::int64_t j, std::int64_t n) {
    const std::int64_t k_at = b_ * p_.sk.b + kv_ * p_.sk.h + j * p_.sk.n;
    const std::int64_t v_at = b_ * p_.sv.b + kv_ * p_.sv.h + j * p_.sv.n;
    const Floats k = rows_of(problem_.k, k_at, p_.sk.n, n, p_.D, p_.dtype, copy_);
    const Floats v = rows_of(problem_.v, v_at, p_.sv.n, n, p_.Dv, p_.dtype, copy_ + kKeys * p_.D);
    product<false>(k.data, k.step, 1, q_, p_.D, s_, n, nullptr);
    if (e_.softcap > 0 || e_.alibi != nullptr || problem_.bias != nullptr) adjust(j, n);
    const bool masked = j < most_lo_ || j + n > least_hi_;
    if (masked) mask(j, n);
    weights(n);
    if (masked && !all_finite(v, n, p_.Dv)) return selected_values(v, j, n);
    product<true>(v.data, 1, v.step, s_, n, o_, p_.Dv, keep_);
  }

  void adjust(std::int64_t j, std::int64_t n) {
    for (std::int64_t r = 0; r < n; ++r) {
      float* s = s_ + r * kRows;
      for (std::int64_t lane = 0; lane < kRows && e_.softcap > 0; ++lane) {
        s[lane] = e_.softcap * kLog2e * std::tanh(s[lane]);
      }
      for (std::int64_t lane = 0; lane < kRows; ++lane) {
        s[lane] -= slope_[lane] * std::fabs(diagonal_[lane] - static_cast<float>(j + r));
      }
    }
    if (problem_.bias != nullptr) add_bias(j, n);
  }

  void add_bias(std::int64_t j, std::int64_t n) {
    const fa_bias& b = *problem_.shape;
    for (std::int64_t lane = 0; lane < kRows; ++lane) {
      const std::int64_t row = (b_ % b.B * b.Hq + head(lane) % b.Hq) * b.Nq + query(lane) % b.Nq;
      const float* bias = problem_.bias + row * b.Nk;
      for (std::int64_t r = 0; r < n; ++r) s_[r * kRows + lane] += bias[(j + r) % b.Nk] * kLog2e;
    }
  }

  Int sees(std::int64_t key, std::int64_t lane) const {
    const Int at = static_cast<std::int32_t>(key) - Int{};
    return (at >= *reinterpret_cast<const Int*>(lo_ + lane)) &
           (at < *reinterpret_cast<const Int*>(hi_ + lane));
  }

  void mask(std::int64_t j, std::int64_t n) {
    for (std::int64_t r = 0; r < n; ++r) {
      for (std::int64_t lane = 0; lane < kRows; lane += kWidth) {
        float* s = s_ + r * kRows + lane;
        store(s, select(sees(j + r, lane), load(s), splat(-kInf)));
      }
    }
  }

  // Scores become weights relative to the new maximum; keep_ is what old sums are worth now. A NaN score
  // loses every comparison but stays in its weight, and so spoils its lane's sum and output.
  void weights(std::int64_t n) {
    for (std::int64_t lane = 0; lane < kRows; lane += kWidth) {
      const Vec old = load(max_ + lane);
      Vec a = old, b = old;
      for (std::int64_t r = 0; r + 1 < n; r += 2) {
        const Vec x = load(s_ + r * kRows + lane), y = load(s_ + (r + 1) * kRows + lane);
        a = select(x > a, x, a);
        b = select(y > b, y, b);
      }
      if (n % 2 != 0) {
        const Vec x = load(s_ + (n - 1) * kRows + lane);
        a = select(x > a, x, a);
      }
      const Vec max = select(a > b, a, b);
      const Vec base =
          select(max == splat(-kInf), Vec{}, max);  // nothing seen yet: -inf - 0, not -inf + inf
      const Vec keep = exp2_of(old - base);
      Vec sum[4] = {load(sum_ + lane) * keep, Vec{}, Vec{}, Vec{}};
      std::int64_t r = 0;
      for (; r + 4 <= n; r += 4) {
        for (int u = 0; u < 4; ++u) {
          float* s = s_ + (r + u) * kRows + lane;
          const Vec w = exp2_of(load(s) - base);
          sum[u] += w;
          store(s, w);
        }
      }
      for (; r < n; ++r) {
        float* s = s_ + r * kRows + lane;
        const Vec w = exp2_of(load(s) - base);
        sum[0] += w;
        store(s, w);
      }
      store(max_ + lane, max);
      store(sum_ + lane, (sum[0] + sum[1]) + (sum[2] + sum[3]));
      store(keep_ + lane, keep);
    }
  }

  // The product where a masked value may be NaN or Inf: lanes that do not see a key leave it out.
  void selected_values(Floats v, std::int64_t j, std::int64_t n) {
    for (std::int64_t d = 0; d < p_.Dv; ++d) {
      for (std::int64_t lane = 0; lane < kRows; lane += kWidth) {
        float* o = o_ + d * kRows + lane;
        Vec sum = load(o) * load(keep_ + lane);
        for (std::int64_t r = 0; r < n; ++r) {
          const Vec term = splat(v.data[r * v.step + d]) * load(s_ + r * kRows + lane);
          sum += select(sees(j + r, lane), term, Vec{});
        }
        store(o, sum);
      }
    }
  }

  void write() {
    for (std::int64_t lane = 0; lane < rows_; ++lane) {
      const std::int64_t h = head(lane), i = query(lane);
      const float scale = sum_[lane] == 0 ? 0.0f : 1 / sum_[lane];
      const std::int64_t at = b_ * p_.so.b + h * p_.so.h + i * p_.so.n;
      if (p_.dtype == ASSAY_F32) {
        float* o = static_cast<float*>(problem_.o) + at;
        for (std::int64_t d = 0; d < p_.Dv; ++d) o[d] = o_[d * kRows + lane] * scale;
      } else {
        auto* o = static_cast<std::uint16_t*>(problem_.o) + at;
        for (std::int64_t d = 0; d < p_.Dv; ++d)
          o[d] = narrow(o_[d * kRows + lane] * scale, p_.dtype);
      }
      if (problem_.lse == nullptr) continue;
      problem_.lse[(b_ * p_.Hq + h) * problem_.lse_head + i] =
          sum_[lane] == 0 ? -kInf
                          : static_cast<float>((max_[lane] + std::log2(double{sum_[lane]})) * kLn2);
    }
  }

  const Problem& problem_;
  const fa_params& p_;
  const fa_extra& e_;
  float *q_, *o_, *s_, *max_, *sum_, *keep_, *slope_, *diagonal_, *copy_;
  std::int32_t *lo_, *hi_;
  std::int64_t b_ = 0, kv_ = 0, first_ = 0, rows_ = 0, L_ = 0;
  std::int64_t least_lo_ = 0, most_lo_ = 0, least_hi_ = 0, most_hi_ = 0;
};

bool valid(const fa_params* p, const void* q, const void* k, const void* v, const void* o) {
  if (p == nullptr || p->B < 0 || p->Hq < 0 || p->Hkv < 0 || p->Nq < 0 || p->Nk < 0 || p->D < 0 ||
      p->Dv < 0)
    return false;
  if (p->Hkv == 0 ? p->Hq != 0 : p->Hq % p->Hkv != 0) return false;
  const std::int64_t queries = p->B * p->Hq * p->Nq, keys = p->B * p->Hkv * p->Nk;
  return (q != nullptr || queries * p->D == 0) && (k != nullptr || keys * p->D == 0) &&
         (v != nullptr || keys * p->Dv == 0) && (o != nullptr || queries * p->Dv == 0);
}

constexpr fa_extra kNone{sizeof(fa_extra), 0, nullptr, nullptr, nullptr};

int forward(assay_ctx* ctx, Problem problem) {
  const fa_params* p = &problem.p;
  if (!valid(p, problem.q, problem.k, problem.v, problem.o)) return ASSAY_EINVAL;
  if (p->B * p->Hq * p->Nq == 0) return ASSAY_OK;
  problem.group = p->Hq / p->Hkv;
  problem.tiles = (problem.group * p->Nq + kRows - 1) / kRows;
  const std::int64_t jobs = p->B * p->Hkv * problem.tiles;
  const auto threads = std::clamp<std::int64_t>(ctx->nthreads, 1, jobs);
  const std::size_t each = (Tile::floats(*p) + 15) / 16 * 16;
  auto* scratch = static_cast<float*>(
      ctx->alloc(ctx, static_cast<std::size_t>(threads) * each * sizeof(float), 64, 0));
  if (scratch == nullptr) return ASSAY_ENOMEM;
  std::atomic<std::int64_t> next{0};
  const auto work = [&](std::int64_t thread) {
    Tile tile(problem, scratch + static_cast<std::size_t>(thread) * each);
    for (std::int64_t job = next++; job < jobs; job = next++) {
      // The last tile of a causal head is the longest: first come, first served from the end.
      const std::int64_t heads = p->B * p->Hkv, at = problem.tiles - 1 - job / heads,
                         bh = job % heads;
      tile.run(bh / p->Hkv, bh % p->Hkv, at * kRows);
    }
  };
  std::vector<std::thread> helpers;
  for (std::int64_t t = 1; t < threads; ++t) helpers.emplace_back(work, t);
  work(0);
  for (std::thread& t : helpers) t.join();
  ctx->free(ctx, scratch);
  return ASSAY_OK;
}

}  // namespace

extern "C" int fa_forward_extra(assay_ctx* ctx, const fa_params* p, const fa_extra* extra,
                                const void* q, const void* k, const void* v, void* o, float* lse) {
  if (p == nullptr) return ASSAY_EINVAL;
  return forward(ctx,
                 {*p, extra != nullptr ? *extra : kNone, q, k, v, o, lse, p->Nq, nullptr, nullptr});
}

extern "C" int fa_forward_varlen(assay_ctx* ctx, const fa_params* p, const fa_varlen* lengths,
                                 const void* q, const void* k, const void* v, void* o, float* lse) {
  if (p == nullptr || p->B < 0 || lengths == nullptr || lengths->total_q < 0 ||
      lengths->total_k < 0 || lengths->cu_q == nullptr || lengths->cu_k == nullptr) {
    return ASSAY_EINVAL;
  }
  fa_params one = *p;
  one.B = std::min<std::int64_t>(p->B, 1);
  one.Nq = lengths->total_q;
  one.Nk = lengths->total_k;
  if (!valid(&one, q, k, v, o)) return ASSAY_EINVAL;
  const auto from = [&](const void* data, std::int64_t n, const assay_stride& s) {
    return data == nullptr
               ? data
               : static_cast<const char*>(data) + n * s.n * (p->dtype == ASSAY_F32 ? 4 : 2);
  };
  int status = ASSAY_OK;
  for (std::int64_t b = 0; b < p->B && status == ASSAY_OK; ++b) {
    const std::int64_t i = lengths->cu_q[b], j = lengths->cu_k[b];
    one.Nq = lengths->cu_q[b + 1] - i;
    one.Nk = lengths->cu_k[b + 1] - j;
    status = forward(ctx, {one, kNone, from(q, i, p->sq), from(k, j, p->sk), from(v, j, p->sv),
                           const_cast<void*>(from(o, i, p->so)), lse == nullptr ? nullptr : lse + i,
                           lengths->total_q, nullptr, nullptr});
  }
  return status;
}

extern "C" int fa_forward_bias(assay_ctx* ctx, const fa_params* p, const fa_bias* shape,
                               const float* bias, const void* q, const void* k, const void* v,
                               void* o, float* lse) {
  if (!valid(p, q, k, v, o) || shape == nullptr) return ASSAY_EINVAL;
  const auto fits = [](std::int64_t size, std::int64_t full) { return size == full || size == 1; };
  if (!fits(shape->B, p->B) || !fits(shape->Hq, p->Hq) || !fits(shape->Nq, p->Nq) ||
      !fits(shape->Nk, p->Nk))
    return ASSAY_EINVAL;
  if (bias == nullptr && shape->B * shape->Hq * shape->Nq * shape->Nk != 0) return ASSAY_EINVAL;
  return forward(ctx, {*p, kNone, q, k, v, o, lse, p->Nq, shape, bias});
}

extern "C" int fa_forward(assay_ctx* ctx, const fa_params* p, const void* q, const void* k,
                          const void* v, void* o, float* lse) {
  return fa_forward_extra(ctx, p, nullptr, q, k, v, o, lse);
}
