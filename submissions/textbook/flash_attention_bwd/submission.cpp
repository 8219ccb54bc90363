// Sample entrant of assay, not a model's answer: what a good textbook would print. delta = dout . o
// once per row; then tiles of 64 queries by 64 keys, each pair of which recomputes its weight from
// lse and adds to dq, dk and dv. dk and dv of a key head are summed in fp32 over all query heads
// that share it. Key heads are shared among threads. fp32 and bf16, any head dimensions, windows;
// no extras.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "abi.h"

namespace {

constexpr std::int64_t kTile = 64;

struct Bf16 {
  std::uint16_t bits;
};

float to_float(float x) { return x; }
float to_float(Bf16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }

void put(float x, float& out) { out = x; }
void put(float x, Bf16& out) {
  const auto u = std::bit_cast<std::uint32_t>(x);  // to nearest even
  out.bits = static_cast<std::uint16_t>(std::isnan(x) ? u >> 16 | 0x40u
                                                      : (u + 0x7fffu + (u >> 16 & 1u)) >> 16);
}

// Sums in sixteen chains, so that the compiler may use vectors.
float dot(const float* a, const float* b, std::int64_t n) {
  float lanes[16] = {}, sum = 0;
  std::int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int l = 0; l < 16; ++l) lanes[l] += a[i + l] * b[i + l];
  }
  for (; i < n; ++i) sum += a[i] * b[i];
  for (const float lane : lanes) sum += lane;
  return sum;
}

void add(float factor, const float* x, float* sum, std::int64_t n) {
  for (std::int64_t d = 0; d < n; ++d) sum[d] += factor * x[d];
}

template <class T>
void read(const T* x, std::int64_t step, std::int64_t n, std::int64_t D, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t d = 0; d < D; ++d) out[i * D + d] = to_float(x[i * step + d]);
  }
}

template <class T>
void write(const float* x, std::int64_t n, std::int64_t D, T* out, std::int64_t step) {
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t d = 0; d < D; ++d) put(x[i * D + d], out[i * step + d]);
  }
}

template <class T>
struct Arrays {
  const T *dout, *q, *k, *v, *o;
  const float* lse;
  T *dq, *dk, *dv;
};

// The work of one key head.
template <class T>
class KeyHead {
 public:
  static std::int64_t floats(const fa_params& p) {
    return p.Nk * (p.D + p.Dv) + kTile * (3 * p.D + 3 * p.Dv + 1);
  }

  KeyHead(const fa_params& p, const Arrays<T>& a, float* scratch) : p_(p), a_(a) {
    const auto take = [&](std::int64_t n) { return std::exchange(scratch, scratch + n); };
    dk_ = take(p.Nk * p.D);
    dv_ = take(p.Nk * p.Dv);
    q_ = take(kTile * p.D);
    k_ = take(kTile * p.D);
    dq_ = take(kTile * p.D);
    dout_ = take(kTile * p.Dv);
    v_ = take(kTile * p.Dv);
    o_ = take(kTile * p.Dv);
    delta_ = take(kTile);
  }

  void run(std::int64_t b, std::int64_t kv) {
    const std::int64_t group = p_.Hq / p_.Hkv;
    b_ = b;
    kv_ = kv;
    std::fill_n(dk_, p_.Nk * p_.D, 0.0f);
    std::fill_n(dv_, p_.Nk * p_.Dv, 0.0f);
    for (h_ = kv * group; h_ < (kv + 1) * group; ++h_) {
      for (std::int64_t i = 0; i < p_.Nq; i += kTile) queries(i, std::min(kTile, p_.Nq - i));
    }
    write(dk_, p_.Nk, p_.D, a_.dk + b * p_.sk.b + kv * p_.sk.h, p_.sk.n);
    write(dv_, p_.Nk, p_.Dv, a_.dv + b * p_.sv.b + kv * p_.sv.h, p_.sv.n);
  }

 private:
  // The keys that query i sees.
  std::pair<std::int64_t, std::int64_t> visible(std::int64_t i) const {
    const std::int64_t diagonal = i + p_.Nk - p_.Nq;
    return {p_.window > 0 ? std::max<std::int64_t>(0, diagonal - p_.window + 1) : 0,
            p_.causal != 0 ? std::min(p_.Nk, diagonal + 1) : p_.Nk};
  }

  void queries(std::int64_t i, std::int64_t m) {
    const std::int64_t query = b_ * p_.sq.b + h_ * p_.sq.h + i * p_.sq.n,
                       out = b_ * p_.so.b + h_ * p_.so.h + i * p_.so.n;
    read(a_.q + query, p_.sq.n, m, p_.D, q_);
    read(a_.dout + out, p_.so.n, m, p_.Dv, dout_);
    read(a_.o + out, p_.so.n, m, p_.Dv, o_);
    for (std::int64_t r = 0; r < m; ++r) delta_[r] = dot(dout_ + r * p_.Dv, o_ + r * p_.Dv, p_.Dv);
    std::fill_n(dq_, m * p_.D, 0.0f);
    const std::int64_t end = visible(i + m - 1).second;
    for (std::int64_t j = visible(i).first; j < end; j += kTile)
      pairs(i, m, j, std::min(kTile, end - j));
    write(dq_, m, p_.D, a_.dq + query, p_.sq.n);
  }

  // All visible pairs of m queries from i and n keys from j.
  void pairs(std::int64_t i, std::int64_t m, std::int64_t j, std::int64_t n) {
    read(a_.k + b_ * p_.sk.b + kv_ * p_.sk.h + j * p_.sk.n, p_.sk.n, n, p_.D, k_);
    read(a_.v + b_ * p_.sv.b + kv_ * p_.sv.h + j * p_.sv.n, p_.sv.n, n, p_.Dv, v_);
    for (std::int64_t r = 0; r < m; ++r) {
      const float *q = q_ + r * p_.D, *dout = dout_ + r * p_.Dv;
      const float lse = a_.lse[(b_ * p_.Hq + h_) * p_.Nq + i + r];
      const auto [begin, end] = visible(i + r);
      for (std::int64_t key = std::max(j, begin); key < std::min(j + n, end); ++key) {
        const float *k = k_ + (key - j) * p_.D, *v = v_ + (key - j) * p_.Dv;
        const float weight = std::exp(dot(q, k, p_.D) * p_.scale - lse);
        const float ds = weight * (dot(dout, v, p_.Dv) - delta_[r]) * p_.scale;
        add(weight, dout, dv_ + key * p_.Dv, p_.Dv);
        add(ds, q, dk_ + key * p_.D, p_.D);
        add(ds, k, dq_ + r * p_.D, p_.D);
      }
    }
  }

  const fa_params& p_;
  const Arrays<T>& a_;
  std::int64_t b_ = 0, kv_ = 0, h_ = 0;
  float *dk_, *dv_, *q_, *k_, *dq_, *dout_, *v_, *o_, *delta_;
};

template <class T>
int backward(assay_ctx* ctx, const fa_params& p, const Arrays<T>& a) {
  const std::int64_t heads = p.B * p.Hkv,
                     threads = std::clamp<std::int64_t>(heads, 1, std::max(ctx->nthreads, 1));
  const std::int64_t each = KeyHead<T>::floats(p);
  auto* scratch = static_cast<float*>(
      ctx->alloc(ctx, static_cast<std::size_t>(threads * each) * sizeof(float), 64, 0));
  if (scratch == nullptr) return ASSAY_ENOMEM;
  std::atomic<std::int64_t> next{0};
  const auto work = [&](std::int64_t thread) {
    KeyHead<T> head(p, a, scratch + thread * each);
    for (std::int64_t at = next++; at < heads; at = next++) head.run(at / p.Hkv, at % p.Hkv);
  };
  std::vector<std::thread> others;
  for (std::int64_t t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
  for (std::thread& t : others) t.join();
  ctx->free(ctx, scratch);
  return ASSAY_OK;
}

template <class T>
int backward(assay_ctx* ctx, const fa_params& p, const void* dout, const void* q, const void* k,
             const void* v, const void* o, const float* lse, void* dq, void* dk, void* dv) {
  const auto in = [](const void* x) { return static_cast<const T*>(x); };
  const auto out = [](void* x) { return static_cast<T*>(x); };
  return backward<T>(
      ctx, p, Arrays<T>{in(dout), in(q), in(k), in(v), in(o), lse, out(dq), out(dk), out(dv)});
}

}  // namespace

extern "C" int fa_backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q,
                           const void* k, const void* v, const void* o, const float* lse, void* dq,
                           void* dk, void* dv) {
  if (p == nullptr || p->B < 0 || p->Hq < 0 || p->Hkv < 0 || p->Nq < 0 || p->Nk < 0 || p->D < 0 ||
      p->Dv < 0)
    return ASSAY_EINVAL;
  if (p->Hkv == 0 ? p->Hq != 0 : p->Hq % p->Hkv != 0) return ASSAY_EINVAL;
  const std::int64_t queries = p->B * p->Hq * p->Nq, keys = p->B * p->Hkv * p->Nk;
  const auto missing = [](std::int64_t n, const void* x, const void* y) {
    return n > 0 && (x == nullptr || y == nullptr);
  };
  if (missing(queries * p->D, q, dq) || missing(keys * p->D, k, dk) || missing(keys * p->Dv, v, dv))
    return ASSAY_EINVAL;
  if (missing(queries * p->Dv, dout, o) || missing(queries, lse, lse)) return ASSAY_EINVAL;
  if (p->dtype == ASSAY_F32) return backward<float>(ctx, *p, dout, q, k, v, o, lse, dq, dk, dv);
  return p->dtype == ASSAY_BF16 ? backward<Bf16>(ctx, *p, dout, q, k, v, o, lse, dq, dk, dv)
                                : ASSAY_ENOTSUP;
}
