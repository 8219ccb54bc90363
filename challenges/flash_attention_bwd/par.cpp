// Expert backward attention for x86 cores with wide vectors.
//
// Arithmetic: five products, 10 D flops per visible pair of query and key, and one exponential; bytes are O(N D)
// against O(N^2 D) flops, so the multipliers are the limit. delta = rowsum(dout o) costs one pass over dout and o, so that
// no product is done twice.
//
// Keys are the outer loop: 64 keys of K and V are packed once, transposed, as [D][64], and dk and dv of these keys
// stay in cache until they are complete. Queries run inside. All five products have one form,
//   c[r][lanes] += a[r, t] * b[t][lanes]
//   S  [i][j]  = Q  x Kt     lanes are keys       dv[j][d] += P^T  x dO     lanes are head dimensions
//   dP [i][j]  = dO x Vt                          dk[j][d] += dS^T x Q,     dq[i][d] += dS x K
// with a broadcast from memory and b read as rows, so queries and gradients are used where the caller has them, whatever
// the strides; only half-width types and head dimensions that do not fill vectors are copied. dq is summed in the
// caller's own array. Register blocks of 6 x 4 vectors. Units of work are key heads with all their query heads, so
// that no sum is shared; with fewer key heads than threads each thread takes every n-th key tile and
// sums dq apart. All orders are fixed: two runs agree bitwise.
//
// Measured on two cores of an EPYC with AVX-512: 160 GF/s on 8 heads of 1024 x 64 causal, 0.80 of OpenBLAS's sgemm beside it;
// 0.87 on 4 of 2048 x 64, 0.90 with D = 128.
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
using Unaligned [[gnu::vector_size(kWidth * 4), gnu::aligned(4), gnu::may_alias]] = float;

constexpr std::int64_t kTile = 64;  // queries and keys of a tile
constexpr int kBlock = 6;
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kLog2e = 1.44269504088896341f;

Vec splat(float x) { return x - Vec{}; }
Vec load(const float* p) { return *reinterpret_cast<const Unaligned*>(p); }
void store(float* p, Vec v) { *reinterpret_cast<Unaligned*>(p) = v; }

// 2^x within 2 ulp; 0 below -126; NaN stays.
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
  const Vec finite = x < splat(-126.0f) ? Vec{} : scaled;
  return x == x ? finite : x;
}

// One factor of a product as scalars a[r * row + t * step], the other as rows b + t * step.
struct Scalars {
  const float* data;
  std::int64_t row, step;
};
struct Rows {
  const float* data;
  std::int64_t step;
};

template <int R, int C, bool kAdd>
void block(Scalars a, Rows b, std::int64_t steps, float* c, std::int64_t c_row) {
  Vec sum[R][C];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < C; ++v) sum[r][v] = kAdd ? load(c + r * c_row + v * kWidth) : Vec{};
  }
  const float *x = a.data, *row = b.data;
  for (std::int64_t t = 0; t < steps; ++t, x += a.step, row += b.step) {
    Vec y[C];
    for (int v = 0; v < C; ++v) y[v] = load(row + v * kWidth);
    for (int r = 0; r < R; ++r) {
      const Vec s = splat(x[r * a.row]);
      for (int v = 0; v < C; ++v) sum[r][v] += s * y[v];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < C; ++v) store(c + r * c_row + v * kWidth, sum[r][v]);
  }
}

template <int C, bool kAdd>
void columns(Scalars a, Rows b, std::int64_t steps, float* c, std::int64_t c_row,
             std::int64_t rows) {
  std::int64_t r = 0;
  for (; r + kBlock <= rows; r += kBlock) {
    block<kBlock, C, kAdd>({a.data + r * a.row, a.row, a.step}, b, steps, c + r * c_row, c_row);
  }
  const Scalars rest{a.data + r * a.row, a.row, a.step};
  float* out = c + r * c_row;
  switch (rows - r) {
    case 5: block<5, C, kAdd>(rest, b, steps, out, c_row); break;
    case 4: block<4, C, kAdd>(rest, b, steps, out, c_row); break;
    case 3: block<3, C, kAdd>(rest, b, steps, out, c_row); break;
    case 2: block<2, C, kAdd>(rest, b, steps, out, c_row); break;
    case 1: block<1, C, kAdd>(rest, b, steps, out, c_row); break;
    default: break;
  }
}

// c[r][lanes] (=|+=) sum_t a[r, t] b[t][lanes]; lanes is a multiple of kWidth.
template <bool kAdd>
void product(Scalars a, Rows b, std::int64_t steps, float* c, std::int64_t c_row, std::int64_t rows,
             std::int64_t lanes) {
  std::int64_t lane = 0;
  for (; lane + kColumns * kWidth <= lanes; lane += kColumns * kWidth) {
    columns<kColumns, kAdd>(a, {b.data + lane, b.step}, steps, c + lane, c_row, rows);
  }
  for (; lane < lanes; lane += kWidth)
    columns<1, kAdd>(a, {b.data + lane, b.step}, steps, c + lane, c_row, rows);
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

// --- one key head ------------------------------------------------------------------------------------

struct Problem {
  const fa_params& p;
  const fa_extra& e;
  const void *dout, *q, *k, *v;
  const float* lse;
  void *dq, *dk, *dv;
  const float* delta;          // [B, Hq, Nq], less dlse
  std::int64_t lse_head;       // elements of lse from head to head
  std::int64_t D = 0, Dv = 0;  // rounded up to whole vectors
  bool copies = false;         // rows are copied, widened and padded
};

bool all_finite(Rows x, std::int64_t n, std::int64_t D) {
  float zero = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t d = 0; d < D; ++d) zero += x.data[i * x.step + d] * 0.0f;
  }
  return zero == 0;
}

class Worker {
 public:
  static std::int64_t floats(const Problem& a) {
    const std::int64_t rows = a.D + a.Dv;
    return kTile * (2 * rows + 2 * kTile + (a.copies ? 2 * rows : 0)) + 4 * kWidth;
  }

  Worker(const Problem& problem, float* scratch) : a_(problem), p_(problem.p), e_(problem.e) {
    const auto take = [&](std::int64_t n) { return std::exchange(scratch, scratch + n); };
    kt_ = take(a_.D * kTile);
    vt_ = take(a_.Dv * kTile);
    dk_ = take(a_.D * kTile);
    dv_ = take(a_.Dv * kTile);
    w_ = take(kTile * kTile);
    ds_ = take(kTile * kTile);
    k_copy_ = a_.copies ? take(a_.D * kTile) : nullptr;
    v_copy_ = a_.copies ? take(a_.Dv * kTile) : nullptr;
    q_copy_ = a_.copies ? take(a_.D * kTile) : nullptr;
    dout_copy_ = a_.copies ? take(a_.Dv * kTile) : nullptr;
  }

  // Key tiles part, part + parts, ... of one key head; sums dq of its query heads into `dq`, whose head and row
  // strides are given.
  void run(std::int64_t b, std::int64_t kv, std::int64_t part, std::int64_t parts, float* dq,
           std::int64_t dq_head, std::int64_t dq_row) {
    b_ = b;
    kv_ = kv;
    dq_ = dq;
    dq_head_ = dq_head;
    dq_row_ = dq_row;
    L_ = e_.kv_len != nullptr ? e_.kv_len[b] : p_.Nk;
    for (std::int64_t h = 0; h < group(); ++h) {
      for (std::int64_t i = 0; i < p_.Nq; ++i)
        std::fill_n(dq + h * dq_head + i * dq_row, lanes_of_dq(), 0.0f);
    }
    for (std::int64_t j = part * kTile; j < p_.Nk; j += parts * kTile)
      keys(j, std::min(kTile, p_.Nk - j));
  }

 private:
  std::int64_t group() const { return p_.Hq / p_.Hkv; }
  std::int64_t lanes_of_dq() const { return a_.copies ? a_.D : p_.D; }

  // Rows n0 .. n0 + n of an array, where they are or copied.
  Rows rows(const void* data, const assay_stride& s, std::int64_t h, std::int64_t n0,
            std::int64_t n, std::int64_t D, std::int64_t padded, float* copy) const {
    const std::int64_t at = b_ * s.b + h * s.h + n0 * s.n;
    if (!a_.copies) return {static_cast<const float*>(data) + at, s.n};
    for (std::int64_t i = 0; i < n; ++i) {
      float* out = copy + i * padded;
      for (std::int64_t d = 0; d < D; ++d) {
        out[d] = p_.dtype == ASSAY_F32
                     ? static_cast<const float*>(data)[at + i * s.n + d]
                     : widen(static_cast<const std::uint16_t*>(data)[at + i * s.n + d], p_.dtype);
      }
      std::fill(out + D, out + padded, 0.0f);
    }
    return {copy, padded};
  }

  static void transpose(Rows x, std::int64_t n, std::int64_t D, float* out) {
    for (std::int64_t j = 0; j < n; ++j) {
      for (std::int64_t d = 0; d < D; ++d) out[d * kTile + j] = x.data[j * x.step + d];
    }
    for (std::int64_t d = 0; d < D && n < kTile; ++d)
      std::fill(out + d * kTile + n, out + (d + 1) * kTile, 0.0f);
  }

  void keys(std::int64_t j, std::int64_t n) {
    j_ = j;
    n_ = n;
    std::fill_n(dk_, kTile * a_.D, 0.0f);
    std::fill_n(dv_, kTile * a_.Dv, 0.0f);
    if (j < L_) {
      n_ = std::min(n, L_ - j);
      k_ = rows(a_.k, p_.sk, kv_, j, n_, p_.D, a_.D, k_copy_);
      v_ = rows(a_.v, p_.sv, kv_, j, n_, p_.Dv, a_.Dv, v_copy_);
      transpose(k_, n_, p_.D, kt_);
      transpose(v_, n_, p_.Dv, vt_);
      // Queries before `first` and from `end` on see none of these keys.
      const std::int64_t offset = L_ - p_.Nq;
      const std::int64_t first =
          p_.causal != 0 ? std::clamp<std::int64_t>(j - offset, 0, p_.Nq) : 0;
      const std::int64_t end =
          p_.window > 0 ? std::clamp<std::int64_t>(j + n_ - 1 - offset + p_.window, 0, p_.Nq)
                        : p_.Nq;
      for (std::int64_t g = 0; g < group(); ++g) {
        for (std::int64_t i = first; i < end; i += kTile) queries(g, i, std::min(kTile, end - i));
      }
    }
    write(a_.dk, p_.sk, p_.D, a_.D, dk_, n);
    write(a_.dv, p_.sv, p_.Dv, a_.Dv, dv_, n);
  }

  void queries(std::int64_t g, std::int64_t i, std::int64_t m) {
    h_ = kv_ * group() + g;
    i_ = i;
    const Rows q = rows(a_.q, p_.sq, h_, i, m, p_.D, a_.D, q_copy_);
    const Rows dout = rows(a_.dout, p_.so, h_, i, m, p_.Dv, a_.Dv, dout_copy_);
    float* dq = dq_ + g * dq_head_ + i * dq_row_;
    const bool masked = partial(i, m);
    if (masked && !(all_finite(q, m, p_.D) && all_finite(dout, m, p_.Dv) &&
                    all_finite(k_, n_, p_.D) && all_finite(v_, n_, p_.Dv))) {
      return selected(q, dout, m, dq);
    }
    product<false>({q.data, q.step, 1}, {kt_, kTile}, p_.D, w_, kTile, m, kTile);
    product<false>({dout.data, dout.step, 1}, {vt_, kTile}, p_.Dv, ds_, kTile, m, kTile);
    weights(m, masked);
    product<true>({w_, 1, kTile}, dout, m, dv_, a_.Dv, n_, a_.Dv);
    product<true>({ds_, 1, kTile}, q, m, dk_, a_.D, n_, a_.D);
    product<true>({ds_, kTile, 1}, k_, n_, dq, dq_row_, m, a_.D);
  }

  std::pair<std::int64_t, std::int64_t> visible(std::int64_t i) const {
    const std::int64_t diagonal = i + L_ - p_.Nq;
    return {p_.window > 0 ? std::max<std::int64_t>(0, diagonal - p_.window + 1) : 0,
            p_.causal != 0 ? std::min(L_, diagonal + 1) : L_};
  }

  // Whether some query of the tile does not see some key of it. Limits rise with i.
  bool partial(std::int64_t i, std::int64_t m) const {
    return visible(i + m - 1).first > j_ || visible(i).second < j_ + n_;
  }

  // Scores and dP become weights and score gradients, both 0 where masked.
  void weights(std::int64_t m, bool masked) {
    const Vec factor = splat(p_.scale * kLog2e), scale = splat(p_.scale);
    const bool adjusted = e_.softcap > 0 || e_.alibi != nullptr;
    alignas(64) float slope[kTile];
    for (std::int64_t r = 0; r < m; ++r) {
      float *w = w_ + r * kTile, *ds = ds_ + r * kTile;
      const std::int64_t row = (b_ * p_.Hq + h_) * p_.Nq + i_ + r;
      const float given = a_.lse[(b_ * p_.Hq + h_) * a_.lse_head + i_ + r];
      const Vec lse = splat(given == -kInf ? kInf : given * kLog2e), delta = splat(a_.delta[row]);
      if (adjusted) adjust(r, w, slope);
      const auto [lo, hi] = visible(i_ + r);
      for (std::int64_t lane = 0; lane < kTile; lane += kWidth) {
        const Vec s = load(w + lane);
        Vec x = exp2_of((adjusted ? s : s * factor) - lse);
        Vec y = x * (load(ds + lane) - delta) * scale;
        if (adjusted) y *= load(slope + lane);
        if (masked) {
          const Int key = static_cast<std::int32_t>(j_ + lane) + lane_numbers();
          const Int seen =
              (key >= static_cast<std::int32_t>(lo)) & (key < static_cast<std::int32_t>(hi));
          x = seen ? x : Vec{};
          y = seen ? y : Vec{};
        }
        store(w + lane, x);
        store(ds + lane, y);
      }
    }
  }

  static Int lane_numbers() {
    Int n{};
    for (int i = 0; i < kWidth; ++i) n[i] = i;
    return n;
  }

  // A score in units of log 2, and its derivative by scale q.k.
  float adjusted_score(std::int64_t r, std::int64_t lane, float dot, float& slope) const {
    float s = dot * p_.scale;
    slope = 1;
    if (e_.softcap > 0) {
      const float t = std::tanh(s / e_.softcap);
      s = e_.softcap * t;
      slope = 1 - t * t;
    }
    if (e_.alibi != nullptr)
      s -= e_.alibi[h_] * static_cast<float>(std::abs(i_ + r + L_ - p_.Nq - j_ - lane));
    return s * kLog2e;
  }

  void adjust(std::int64_t r, float* s, float* slope) const {
    for (std::int64_t lane = 0; lane < kTile; ++lane)
      s[lane] = adjusted_score(r, lane, s[lane], slope[lane]);
  }

  // The same where a masked operand may be NaN or Inf: pair by pair, touching only what is visible.
  void selected(Rows q, Rows dout, std::int64_t m, float* dq) {
    for (std::int64_t r = 0; r < m; ++r) {
      const auto [lo, hi] = visible(i_ + r);
      const std::int64_t row = (b_ * p_.Hq + h_) * p_.Nq + i_ + r;
      for (std::int64_t c = 0; c < n_; ++c) {
        if (j_ + c < lo || j_ + c >= hi) continue;
        float dot = 0, dp = 0, slope = 1;
        for (std::int64_t d = 0; d < p_.D; ++d)
          dot += q.data[r * q.step + d] * k_.data[c * k_.step + d];
        for (std::int64_t d = 0; d < p_.Dv; ++d)
          dp += dout.data[r * dout.step + d] * v_.data[c * v_.step + d];
        const float w = std::exp2(adjusted_score(r, c, dot, slope) -
                                  a_.lse[(b_ * p_.Hq + h_) * a_.lse_head + i_ + r] * kLog2e);
        const float ds = w * (dp - a_.delta[row]) * slope * p_.scale;
        for (std::int64_t d = 0; d < p_.Dv; ++d)
          dv_[c * a_.Dv + d] += w * dout.data[r * dout.step + d];
        for (std::int64_t d = 0; d < p_.D; ++d) {
          dk_[c * a_.D + d] += ds * q.data[r * q.step + d];
          dq[r * dq_row_ + d] += ds * k_.data[c * k_.step + d];
        }
      }
    }
  }

  void write(void* data, const assay_stride& s, std::int64_t D, std::int64_t padded,
             const float* sums, std::int64_t n) const {
    for (std::int64_t r = 0; r < n; ++r) {
      const std::int64_t at = b_ * s.b + kv_ * s.h + (j_ + r) * s.n;
      for (std::int64_t d = 0; d < D; ++d) {
        if (p_.dtype == ASSAY_F32) {
          static_cast<float*>(data)[at + d] = sums[r * padded + d];
        } else {
          static_cast<std::uint16_t*>(data)[at + d] = narrow(sums[r * padded + d], p_.dtype);
        }
      }
    }
  }

  const Problem& a_;
  const fa_params& p_;
  const fa_extra& e_;
  float *kt_, *vt_, *dk_, *dv_, *w_, *ds_, *k_copy_, *v_copy_, *q_copy_, *dout_copy_;
  std::int64_t b_ = 0, kv_ = 0, h_ = 0, L_ = 0, i_ = 0, j_ = 0, n_ = 0;
  float* dq_ = nullptr;
  std::int64_t dq_head_ = 0, dq_row_ = 0;
  Rows k_{}, v_{};
};

// --- the whole call ------------------------------------------------------------------------------------

float element(const void* data, std::int64_t at, std::int32_t dtype) {
  return dtype == ASSAY_F32 ? static_cast<const float*>(data)[at]
                            : widen(static_cast<const std::uint16_t*>(data)[at], dtype);
}

void deltas(const fa_params& p, const void* dout, const void* o, const float* dlse,
            std::int64_t row, std::int64_t end, float* delta) {
  for (; row < end; ++row) {
    const std::int64_t at =
        row / (p.Hq * p.Nq) * p.so.b + row / p.Nq % p.Hq * p.so.h + row % p.Nq * p.so.n;
    float sum[8] = {};
    for (std::int64_t d = 0; d < p.Dv; ++d)
      sum[d % 8] += element(dout, at + d, p.dtype) * element(o, at + d, p.dtype);
    delta[row] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])) -
                 (dlse != nullptr ? dlse[row] : 0.0f);
  }
}

template <class Body>
void on_threads(std::int64_t threads, const Body& body) {
  std::vector<std::thread> helpers;
  for (std::int64_t t = 1; t < threads; ++t) helpers.emplace_back(body, t);
  body(0);
  for (std::thread& t : helpers) t.join();
}

bool valid(const fa_params* p, const void* const* queries, const void* const* keys,
           const void* const* values, const void* const* outputs, const float* lse) {
  if (p == nullptr || p->B < 0 || p->Hq < 0 || p->Hkv < 0 || p->Nq < 0 || p->Nk < 0 || p->D < 0 ||
      p->Dv < 0)
    return false;
  if (p->Hkv == 0 ? p->Hq != 0 : p->Hq % p->Hkv != 0) return false;
  const std::int64_t rows = p->B * p->Hq * p->Nq, columns = p->B * p->Hkv * p->Nk;
  const auto present = [](const void* const* two, std::int64_t n) {
    return n == 0 || (two[0] != nullptr && two[1] != nullptr);
  };
  return present(queries, rows * p->D) && present(keys, columns * p->D) &&
         present(values, columns * p->Dv) && present(outputs, rows * p->Dv) &&
         (lse != nullptr || rows == 0);
}

int backward(assay_ctx* ctx, const fa_params* p, const fa_extra* extra, const float* dlse,
             const void* dout, const void* q, const void* k, const void* v, const void* o,
             const float* lse, std::int64_t lse_head, void* dq, void* dk, void* dv) {
  const void *queries[] = {q, dq}, *keys[] = {k, dk}, *values[] = {v, dv}, *outputs[] = {o, dout};
  if (!valid(p, queries, keys, values, outputs, lse)) return ASSAY_EINVAL;
  const std::int64_t units = p->B * p->Hkv, group = p->Hkv == 0 ? 0 : p->Hq / p->Hkv,
                     rows = p->B * p->Hq * p->Nq;
  if (units == 0) return ASSAY_OK;
  const fa_extra none{sizeof(fa_extra), 0, nullptr, nullptr, nullptr};
  Problem a{*p,      extra != nullptr ? *extra : none,
            dout,    q,
            k,       v,
            lse,     dq,
            dk,      dv,
            nullptr, lse_head,
            0,       0,
            false};
  a.D = (p->D + kWidth - 1) / kWidth * kWidth;
  a.Dv = (p->Dv + kWidth - 1) / kWidth * kWidth;
  a.copies = p->dtype != ASSAY_F32 || a.D != p->D || a.Dv != p->Dv;
  const std::int64_t tiles = std::max<std::int64_t>((p->Nk + kTile - 1) / kTile, 1);
  const std::int64_t threads = std::clamp<std::int64_t>(ctx->nthreads, 1, units * tiles);
  const std::int64_t parts = units >= threads ? 1 : std::min(tiles, (threads + units - 1) / units);
  const std::int64_t each = Worker::floats(a), sums = group * p->Nq * a.D;
  // Sums of dq apart from the output: all of them with copies, else those of every part but the first.
  const std::int64_t apart = a.copies ? parts : parts - 1;
  const std::int64_t total =
      threads * each + rows + (parts == 1 && a.copies ? threads : units * apart) * sums + 64;
  auto* scratch =
      static_cast<float*>(ctx->alloc(ctx, static_cast<std::size_t>(total) * sizeof(float), 64, 0));
  if (scratch == nullptr) return ASSAY_ENOMEM;
  float* delta = scratch + threads * each;
  float* dq_sums = delta + rows;
  a.delta = delta;

  const auto output_of = [&](std::int64_t b, std::int64_t kv) {
    return b * p->sq.b + kv * group * p->sq.h;
  };
  // Adds up the sums of dq of one key head that were kept apart, and stores them.
  const auto finish = [&](std::int64_t b, std::int64_t kv, const float* first, std::int64_t count) {
    for (std::int64_t row = 0; row < group * p->Nq; ++row) {
      const std::int64_t at = output_of(b, kv) + row / p->Nq * p->sq.h + row % p->Nq * p->sq.n;
      for (std::int64_t d = 0; d < p->D; ++d) {
        float sum = a.copies ? 0.0f : static_cast<float*>(dq)[at + d];
        for (std::int64_t i = 0; i < count; ++i) sum += first[i * sums + row * a.D + d];
        if (p->dtype == ASSAY_F32) {
          static_cast<float*>(dq)[at + d] = sum;
        } else {
          static_cast<std::uint16_t*>(dq)[at + d] = narrow(sum, p->dtype);
        }
      }
    }
  };

  on_threads(threads, [&](std::int64_t t) {
    deltas(*p, dout, o, dlse, rows * t / threads, rows * (t + 1) / threads, delta);
  });
  std::atomic<std::int64_t> next{0};
  on_threads(threads, [&](std::int64_t t) {
    Worker worker(a, scratch + t * each);
    for (std::int64_t job = next++; job < units * parts; job = next++) {
      const std::int64_t unit = job / parts, part = job % parts, b = unit / p->Hkv,
                         kv = unit % p->Hkv;
      if (!a.copies && part == 0) {
        worker.run(b, kv, 0, parts, static_cast<float*>(dq) + output_of(b, kv), p->sq.h, p->sq.n);
      } else if (parts == 1) {
        worker.run(b, kv, 0, 1, dq_sums + t * sums, p->Nq * a.D, a.D);
        finish(b, kv, dq_sums + t * sums, 1);
      } else {
        float* mine = dq_sums + (unit * apart + part - (a.copies ? 0 : 1)) * sums;
        worker.run(b, kv, part, parts, mine, p->Nq * a.D, a.D);
      }
    }
  });
  for (std::int64_t unit = 0; unit < units && parts > 1; ++unit) {
    finish(unit / p->Hkv, unit % p->Hkv, dq_sums + unit * apart * sums, apart);
  }
  ctx->free(ctx, scratch);
  return ASSAY_OK;
}

}  // namespace

extern "C" int fa_backward_extra(assay_ctx* ctx, const fa_params* p, const fa_extra* extra,
                                 const float* dlse, const void* dout, const void* q, const void* k,
                                 const void* v, const void* o, const float* lse, void* dq, void* dk,
                                 void* dv) {
  if (p == nullptr) return ASSAY_EINVAL;
  return backward(ctx, p, extra, dlse, dout, q, k, v, o, lse, p->Nq, dq, dk, dv);
}

extern "C" int fa_backward_varlen(assay_ctx* ctx, const fa_params* p, const fa_varlen* lengths,
                                  const void* dout, const void* q, const void* k, const void* v,
                                  const void* o, const float* lse, void* dq, void* dk, void* dv) {
  if (p == nullptr || p->B < 0 || lengths == nullptr || lengths->total_q < 0 ||
      lengths->total_k < 0 || lengths->cu_q == nullptr || lengths->cu_k == nullptr) {
    return ASSAY_EINVAL;
  }
  fa_params one = *p;
  one.B = std::min<std::int64_t>(p->B, 1);
  one.Nq = lengths->total_q;
  one.Nk = lengths->total_k;
  const void *queries[] = {q, dq}, *keys[] = {k, dk}, *values[] = {v, dv}, *outputs[] = {o, dout};
  if (!valid(&one, queries, keys, values, outputs, lse)) return ASSAY_EINVAL;
  const auto from = [&](const void* data, std::int64_t n, const assay_stride& s) {
    return data == nullptr
               ? data
               : static_cast<const char*>(data) + n * s.n * (p->dtype == ASSAY_F32 ? 4 : 2);
  };
  const auto into = [&](void* data, std::int64_t n, const assay_stride& s) {
    return const_cast<void*>(from(data, n, s));
  };
  int status = ASSAY_OK;
  for (std::int64_t b = 0; b < p->B && status == ASSAY_OK; ++b) {
    const std::int64_t i = lengths->cu_q[b], j = lengths->cu_k[b];
    one.Nq = lengths->cu_q[b + 1] - i;
    one.Nk = lengths->cu_k[b + 1] - j;
    status = backward(ctx, &one, nullptr, nullptr, from(dout, i, p->so), from(q, i, p->sq),
                      from(k, j, p->sk), from(v, j, p->sv), from(o, i, p->so),
                      lse == nullptr ? nullptr : lse + i, lengths->total_q, into(dq, i, p->sq),
                      into(dk, j, p->sk), into(dv, j, p->sv));
  }
  return status;
}

extern "C" int fa_backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q,
                           const void* k, const void* v, const void* o, const float* lse, void* dq,
                           void* dk, void* dv) {
  return fa_backward_extra(ctx, p, nullptr, nullptr, dout, q, k, v, o, lse, dq, dk, dv);
}
