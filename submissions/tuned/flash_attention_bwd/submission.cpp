// Sample entrant of assay, not a model's answer: fast and correct. Queries are the outer loop: a
// tile of 128 with its dout and delta passes over the keys once, 64 at a time, and its dq is
// complete at the end. dk and dv are summed in fp32, all of one key head, by the thread that has
// the head; when there are fewer heads than threads, several threads share the tiles of a head and
// their sums are added in a fixed order. Scores and dP are computed for whole blocks, masked pairs
// included, but the products that follow run over visible pairs only: the keys that a query sees
// are one range, and so are the queries that see a key. Nothing masked is ever added, and a row
// without keys is never read. fp32, bf16, f16, any head dimensions, windows; no extras.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
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

constexpr std::int64_t kBlock = 4, kQueries = 128, kKeys = 64;  // tiles are whole blocks

Vec splat(float x) { return x - Vec{}; }
Vec load(const float* p) { return *reinterpret_cast<const Vec*>(p); }
void store(float* p, Vec v) { *reinterpret_cast<Vec*>(p) = v; }
std::int64_t padded(std::int64_t n) { return (n + kWidth - 1) / kWidth * kWidth; }

template <int... I>
constexpr Int lane_numbers(std::integer_sequence<int, I...>) {
  return Int{I...};
}
constexpr Int kLane = lane_numbers(std::make_integer_sequence<int, kWidth>());

// e^x for x below 80: 2^n times a polynomial of the rest; 0 below 2^-126; NaN stays.
Vec exp_of(Vec x) {
  const Vec y = x * 1.44269504088896341f,
            rounder = splat(12582912.0f);  // 1.5 2^23: its last bit is worth 1
  const Vec n = y + rounder, f = (y - (n - rounder)) * 0.693147181f;
  Vec e = splat(1.0f / 5040);
  for (const float c : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f})
    e = e * f + c;
  e = reinterpret_cast<Vec>(reinterpret_cast<Bits>(e) + (reinterpret_cast<Bits>(n) << 23));
  e = y < -126.0f ? Vec{} : e;
  return y == y ? e : y;
}

// One factor of a product: the scalar of row r and step t is data[r row + t step].
struct Scalars {
  const float* data;
  std::int64_t row, step;
};

// The steps of a product.
struct Range {
  std::int64_t from, to;
};

// c[r][lanes] (=|+=) sum of a(r, t) b[t][lanes] over the range.
template <int R, int C, bool kAdd>
void block(Scalars a, const float* b, std::int64_t lanes, Range range, float* c) {
  Vec sum[R][C];
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < C; ++v) sum[r][v] = kAdd ? load(c + r * lanes + v * kWidth) : Vec{};
  }
  for (std::int64_t t = range.from; t < range.to; ++t) {
    Vec y[C];
    for (int v = 0; v < C; ++v) y[v] = load(b + t * lanes + v * kWidth);
    for (int r = 0; r < R; ++r) {
      const Vec x = splat(a.data[r * a.row + t * a.step]);
      for (int v = 0; v < C; ++v) sum[r][v] += x * y[v];
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int v = 0; v < C; ++v) store(c + r * lanes + v * kWidth, sum[r][v]);
  }
}

template <int R, bool kAdd>
void product(Scalars a, const float* b, std::int64_t lanes, Range range, float* c) {
  if (range.from >= range.to && kAdd) return;
  std::int64_t at = 0;
  for (; at + kColumns * kWidth <= lanes; at += kColumns * kWidth)
    block<R, kColumns, kAdd>(a, b + at, lanes, range, c + at);
  for (; at < lanes; at += kWidth) block<R, 1, kAdd>(a, b + at, lanes, range, c + at);
}

// Adds the product of a block of rows, each over its own range: first what all have in common.
template <class RangeOf>
void add_ranges(Scalars a, const float* b, std::int64_t lanes, const RangeOf& range_of, float* c) {
  Range ranges[kBlock], common{0, 1 << 30};
  for (int r = 0; r < kBlock; ++r) {
    ranges[r] = range_of(r);
    common = {std::max(common.from, ranges[r].from), std::min(common.to, ranges[r].to)};
  }
  common.to = std::max(common.from, common.to);
  product<kBlock, true>(a, b, lanes, common, c);
  for (int r = 0; r < kBlock; ++r) {
    const Scalars row{a.data + r * a.row, 0, a.step};
    const auto [from, to] = ranges[r];
    product<1, true>(row, b, lanes, {from, std::min(to, common.from)}, c + r * lanes);
    product<1, true>(row, b, lanes, {std::max(from, common.to), to}, c + r * lanes);
  }
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

// The rows of an fp32 array of whole vectors, in the element type.
void write_rows(std::int32_t dtype, const float* rows, std::int64_t n, std::int64_t D, void* data,
                std::int64_t at, std::int64_t step) {
  with_type(dtype, [&](auto zero) {
    using T = decltype(zero);
    T* out = static_cast<T*>(data) + at;
    for (std::int64_t i = 0; i < n; ++i, out += step, rows += padded(D)) {
      for (std::int64_t d = 0; d < D; ++d) out[d] = static_cast<T>(rows[d]);
    }
  });
}

// --- a tile of queries
// --------------------------------------------------------------------------------

struct Problem {
  const fa_params& p;
  const void *dout, *q, *k, *v, *o;
  const float* lse;
  void *dq, *dk, *dv;
};

// Sums of one key head, [Nk][padded D] and [Nk][padded Dv]; whole blocks of keys.
struct Sums {
  float *dk, *dv;
};

class Tile {
 public:
  static std::int64_t floats(const fa_params& p) {
    const std::int64_t D = padded(p.D), Dv = padded(p.Dv);
    return kQueries * (2 * D + Dv + 2 * kKeys + 2) + kKeys * (2 * D + Dv + std::max(D, Dv));
  }

  Tile(const Problem& problem, float* scratch) : a_(problem), p_(problem.p) {
    const auto take = [&](std::int64_t n) { return std::exchange(scratch, scratch + n); };
    D_ = padded(p_.D);
    Dv_ = padded(p_.Dv);
    q_ = take(kQueries * D_);
    dout_ = take(kQueries * Dv_);
    dq_ = take(kQueries * D_);
    w_ = take(kQueries * kKeys);
    ds_ = take(kQueries * kKeys);
    lse_ = take(kQueries);
    delta_ = take(kQueries);
    k_ = take(kKeys * D_);
    kt_ = take(kKeys * D_);
    vt_ = take(kKeys * Dv_);
    v_ = take(kKeys * std::max(D_, Dv_));
  }

  // Writes dq of queries first .. of a head, and adds what they give to dk and dv.
  void run(std::int64_t b, std::int64_t h, std::int64_t first, const Sums& sums) {
    b_ = b;
    kv_ = h / (p_.Hq / p_.Hkv);
    first_ = first;
    m_ = std::min(kQueries, p_.Nq - first);
    rows_ = (m_ + kBlock - 1) / kBlock * kBlock;
    read_queries(h);
    const std::int64_t end = keys_of(m_ - 1).to;
    for (std::int64_t j = keys_of(0).from / kKeys * kKeys; j < end; j += kKeys) keys(j, sums);
    write_rows(p_.dtype, dq_, m_, p_.D, a_.dq, b * p_.sq.b + h * p_.sq.h + first * p_.sq.n,
               p_.sq.n);
  }

 private:
  // The keys that a row of the tile sees; nothing for rows that fill up the last block.
  Range keys_of(std::int64_t row) const {
    if (row >= m_) return {0, 0};
    const std::int64_t diagonal = first_ + row + p_.Nk - p_.Nq;
    return {p_.window > 0 ? std::clamp<std::int64_t>(diagonal - p_.window + 1, 0, p_.Nk) : 0,
            p_.causal != 0 ? std::clamp<std::int64_t>(diagonal + 1, 0, p_.Nk) : p_.Nk};
  }

  // The rows of the tile that see a key; nothing for keys that fill up the last block.
  Range rows_of(std::int64_t key) const {
    if (key >= p_.Nk) return {0, 0};
    const std::int64_t row = key + p_.Nq - p_.Nk - first_;  // whose diagonal it is on
    return {
        p_.causal != 0 ? std::clamp<std::int64_t>(row, 0, m_) : 0,
        p_.window > 0 && p_.window < m_ - row ? std::max<std::int64_t>(row + p_.window, 0) : m_};
  }

  void read_queries(std::int64_t h) {
    const std::int64_t at = b_ * p_.so.b + h * p_.so.h + first_ * p_.so.n;
    read_rows(p_.dtype, a_.q, b_ * p_.sq.b + h * p_.sq.h + first_ * p_.sq.n, p_.sq.n, m_, p_.D, q_);
    read_rows(p_.dtype, a_.dout, at, p_.so.n, m_, p_.Dv, dout_);
    std::fill(q_ + m_ * D_, q_ + rows_ * D_, 0.0f);
    std::fill(dout_ + m_ * Dv_, dout_ + rows_ * Dv_, 0.0f);
    std::fill_n(dq_, rows_ * D_, 0.0f);
    for (std::int64_t row = 0; row < rows_; ++row)
      lse_[row] = row < m_ ? a_.lse[(b_ * p_.Hq + h) * p_.Nq + first_ + row] : 0.0f;
    std::fill_n(delta_, rows_, 0.0f);
    with_type(p_.dtype, [&](auto zero) {
      for (std::int64_t row = 0; row < m_; ++row) {
        const auto* o = static_cast<const decltype(zero)*>(a_.o) + at + row * p_.so.n;
        float sum[8] = {};
        for (std::int64_t d = 0; d < p_.Dv; ++d)
          sum[d % 8] += dout_[row * Dv_ + d] * static_cast<float>(o[d]);
        for (const float s : sum) delta_[row] += s;
      }
    });
  }

  void keys(std::int64_t j, const Sums& sums) {
    const std::int64_t n = std::min(kKeys, p_.Nk - j);
    read_keys(a_.k, p_.sk, j, n, p_.D, k_, kt_);
    read_keys(a_.v, p_.sv, j, n, p_.Dv, v_, vt_);
    for (std::int64_t row = 0; row < rows_; row += kBlock) {
      const std::int64_t last = std::min(row + kBlock, m_) - 1;
      if (keys_of(last).to <= j || keys_of(row).from >= j + n) continue;
      product<kBlock, false>({q_ + row * D_, D_, 1}, kt_, kKeys, {0, D_}, w_ + row * kKeys);
      product<kBlock, false>({dout_ + row * Dv_, Dv_, 1}, vt_, kKeys, {0, Dv_}, ds_ + row * kKeys);
      for (std::int64_t r = row; r < row + kBlock; ++r) weights(r);
      const auto seen = [&](std::int64_t r) {
        const Range range = keys_of(row + r);
        return Range{std::max<std::int64_t>(range.from - j, 0), std::min(range.to - j, n)};
      };
      add_ranges({ds_ + row * kKeys, kKeys, 1}, k_, D_, seen, dq_ + row * D_);
    }
    for (std::int64_t c = 0; c < n; c += kBlock) {
      const auto seers = [&](std::int64_t r) { return rows_of(j + c + r); };
      add_ranges({w_ + c, 1, kKeys}, dout_, Dv_, seers, sums.dv + (j + c) * Dv_);
      add_ranges({ds_ + c, 1, kKeys}, q_, D_, seers, sums.dk + (j + c) * D_);
    }
  }

  void read_keys(const void* data, const assay_stride& s, std::int64_t j, std::int64_t n,
                 std::int64_t D, float* rows, float* transposed) {
    const std::int64_t lanes = padded(D);
    read_rows(p_.dtype, data, b_ * s.b + kv_ * s.h + j * s.n, s.n, n, D, rows);
    std::fill(rows + n * lanes, rows + kKeys * lanes, 0.0f);
    for (std::int64_t c = 0; c < kKeys; c += kWidth) {
      for (std::int64_t d = 0; d < lanes; d += kWidth)
        transpose(rows + c * lanes + d, lanes, transposed + d * kKeys + c, kKeys);
    }
  }

  // Scores and dP of a row become weights and score gradients. What they become where masked is not
  // used.
  void weights(std::int64_t row) {
    const Vec scale = splat(p_.scale), lse = splat(lse_[row]), delta = splat(delta_[row]);
    for (std::int64_t at = row * kKeys; at < (row + 1) * kKeys; at += kWidth) {
      const Vec w = exp_of(load(w_ + at) * scale - lse);
      store(w_ + at, w);
      store(ds_ + at, w * (load(ds_ + at) - delta) * scale);
    }
  }

  const Problem& a_;
  const fa_params& p_;
  std::int64_t D_ = 0, Dv_ = 0, b_ = 0, kv_ = 0, first_ = 0, m_ = 0, rows_ = 0;
  float *q_, *dout_, *dq_, *w_, *ds_, *lse_, *delta_, *k_, *kt_, *vt_, *v_;
};

// --- the whole call
// -----------------------------------------------------------------------------------

// Jobs are key heads, or equal parts of them if those are fewer than threads. The sums of a job are
// its own until the parts of a head are added.
class Call {
 public:
  Call(assay_ctx* ctx, const Problem& problem) : a_(problem), p_(problem.p) {
    heads_ = p_.B * p_.Hkv;
    tiles_ = (p_.Nq + kQueries - 1) / kQueries * (p_.Hq / p_.Hkv);
    const std::int64_t most = std::max<std::int64_t>(ctx->nthreads, 1);
    parts_ = heads_ >= most ? 1
                            : std::clamp<std::int64_t>((most + heads_ - 1) / heads_, 1,
                                                       std::max<std::int64_t>(tiles_, 1));
    threads_ = std::min(most, heads_ * parts_);
    keys_ = (p_.Nk + kBlock - 1) / kBlock * kBlock;
    of_tile_ = padded(Tile::floats(p_));
    of_sums_ = keys_ * (padded(p_.D) + padded(p_.Dv));
  }

  // fp32 numbers of scratch.
  std::int64_t floats() const { return threads_ * of_tile_ + slots() * of_sums_; }

  void run(float* scratch) {
    tile_scratch_ = scratch;
    sum_scratch_ = scratch + threads_ * of_tile_;
    std::atomic<std::int64_t> next{0};
    const auto work = [&](std::int64_t thread) {
      Tile tile(a_, tile_scratch_ + thread * of_tile_);
      for (std::int64_t job = next++; job < heads_ * parts_; job = next++) {
        const std::int64_t slot = parts_ == 1 ? thread : job;
        part(tile, job / parts_, job % parts_, slot);
        if (parts_ == 1) write(job, slot);
      }
    };
    std::vector<std::thread> others;
    for (std::int64_t t = 1; t < threads_; ++t) others.emplace_back(work, t);
    work(0);
    for (std::thread& t : others) t.join();
    for (std::int64_t head = 0; parts_ > 1 && head < heads_; ++head) write(head, head * parts_);
  }

 private:
  std::int64_t slots() const { return parts_ == 1 ? threads_ : heads_ * parts_; }
  Sums sums(std::int64_t slot) const {
    float* dk = sum_scratch_ + slot * of_sums_;
    return {dk, dk + keys_ * padded(p_.D)};
  }

  void part(Tile& tile, std::int64_t head, std::int64_t part, std::int64_t slot) {
    const std::int64_t group = p_.Hq / p_.Hkv;
    std::fill_n(sums(slot).dk, of_sums_, 0.0f);
    for (std::int64_t t = part; t < tiles_; t += parts_) {
      tile.run(head / p_.Hkv, head % p_.Hkv * group + t % group, t / group * kQueries, sums(slot));
    }
  }

  // Adds the parts of a key head, which start at a slot, and stores them.
  void write(std::int64_t head, std::int64_t slot) {
    float* total = sums(slot).dk;
    for (std::int64_t i = 1; i < parts_; ++i) {
      const float* more = sums(slot + i).dk;
      for (std::int64_t at = 0; at < of_sums_; ++at) total[at] += more[at];
    }
    const std::int64_t b = head / p_.Hkv, kv = head % p_.Hkv;
    write_rows(p_.dtype, sums(slot).dk, p_.Nk, p_.D, a_.dk, b * p_.sk.b + kv * p_.sk.h, p_.sk.n);
    write_rows(p_.dtype, sums(slot).dv, p_.Nk, p_.Dv, a_.dv, b * p_.sv.b + kv * p_.sv.h, p_.sv.n);
  }

  const Problem& a_;
  const fa_params& p_;
  std::int64_t heads_ = 0, tiles_ = 0, parts_ = 1, threads_ = 1, keys_ = 0, of_tile_ = 0,
               of_sums_ = 0;
  float *tile_scratch_ = nullptr, *sum_scratch_ = nullptr;
};

bool valid(const Problem& a) {
  const fa_params& p = a.p;
  for (const std::int64_t n : {p.B, p.Hq, p.Hkv, p.Nq, p.Nk, p.D, p.Dv}) {
    if (n < 0) return false;
  }
  if (p.Hkv == 0 ? p.Hq != 0 : p.Hq % p.Hkv != 0) return false;
  const std::int64_t queries = p.B * p.Hq * p.Nq, keys = p.B * p.Hkv * p.Nk;
  const auto given = [](std::int64_t n, const void* x, const void* y) {
    return n == 0 || (x != nullptr && y != nullptr);
  };
  return given(queries * p.D, a.q, a.dq) && given(keys * p.D, a.k, a.dk) &&
         given(keys * p.Dv, a.v, a.dv) && given(queries * p.Dv, a.o, a.dout) &&
         given(queries, a.lse, a.lse);
}

}  // namespace

extern "C" int fa_backward(assay_ctx* ctx, const fa_params* p, const void* dout, const void* q,
                           const void* k, const void* v, const void* o, const float* lse, void* dq,
                           void* dk, void* dv) {
  if (p == nullptr) return ASSAY_EINVAL;
  const Problem problem{*p, dout, q, k, v, o, lse, dq, dk, dv};
  if (!valid(problem)) return ASSAY_EINVAL;
  if (p->dtype != ASSAY_F32 && p->dtype != ASSAY_BF16 && p->dtype != ASSAY_F16)
    return ASSAY_ENOTSUP;
  if (p->B * p->Hkv == 0) return ASSAY_OK;
  Call call(ctx, problem);
  auto* scratch = static_cast<float*>(
      ctx->alloc(ctx, static_cast<std::size_t>(call.floats()) * sizeof(float), 64, 0));
  if (scratch == nullptr) return ASSAY_ENOMEM;
  call.run(scratch);
  ctx->free(ctx, scratch);
  return ASSAY_OK;
}
