#include "attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "assay/parallel.h"
#include "assay/random.h"
#include "assay/tolerance.h"
#include "util/files.h"

namespace assay::attention {
namespace {

using nlohmann::json;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

assay_stride strides(const std::string& layout, std::int64_t H, std::int64_t N, std::int64_t D) {
  if (layout == "bhnd") return {H * N * D, N * D, D};
  if (layout == "bshd") return {N * H * D, D, H * D};
  if (layout == "padded") {
    const std::int64_t n = D + 5, h = N * n + 7;
    return {H * h + 11, h, n};
  }
  throw Error(fmt::format("attention: unknown layout '{}'", layout));
}

std::int32_t dtype_named(const std::string& name) {
  if (name == "f32") return ASSAY_F32;
  if (name == "bf16") return ASSAY_BF16;
  if (name == "f16") return ASSAY_F16;
  throw Error(fmt::format("attention: unknown dtype '{}'", name));
}

float* row(const assay_stride& s, float* data, std::int64_t b, std::int64_t h, std::int64_t n) {
  return data + b * s.b + h * s.h + n * s.n;
}

// q, k and v in fp32 before rounding, and the directions that structured kinds need.
class Inputs {
 public:
  Inputs(const Problem& problem, std::uint64_t seed, const BufferView& q, const BufferView& k,
         const BufferView& v)
      : problem_(problem),
        p_(problem.p),
        seed_(seed),
        q_(p_.dtype, q),
        k_(p_.dtype, k),
        v_(p_.dtype, v) {}

  void make() {
    fill_normal(q_.values(), substream(seed_, 1), 0, problem_.data.value("q_sigma", 1.0f));
    fill_normal(k_.values(), substream(seed_, 2), 0, problem_.data.value("k_sigma", 1.0f));
    fill_normal(v_.values(), substream(seed_, 3), 0, problem_.data.value("v_sigma", 1.0f));
    structure(problem_.data.value("kind", "normal"));
    spoil("nan_q", q_, p_.sq, p_.Hq, p_.D, kNan);
    spoil("nan_k", k_, p_.sk, p_.Hkv, p_.D, kNan);
    spoil("nan_v", v_, p_.sv, p_.Hkv, p_.Dv, kNan);
    spoil("huge_k", k_, p_.sk, p_.Hkv, p_.D, 1e30f);
    q_.store();
    k_.store();
    v_.store();
  }

 private:
  // A buffer as floats: itself, or a copy that is rounded into it.
  class Floats {
   public:
    Floats(std::int32_t dtype, const BufferView& view) : dtype_(dtype), view_(view) {
      if (dtype != ASSAY_F32) copy_.resize(view.bytes / 2);
    }
    std::span<float> values() {
      return dtype_ == ASSAY_F32 ? view_.span<float>() : std::span<float>(copy_);
    }
    void store() {
      for (std::size_t i = 0; i < copy_.size(); ++i) {
        view_.as<std::uint16_t>()[i] =
            dtype_ == ASSAY_BF16 ? float_to_bf16(copy_[i]) : float_to_f16(copy_[i]);
      }
    }

   private:
    std::int32_t dtype_;
    BufferView view_;
    std::vector<float> copy_;
  };

  template <class Body>
  void each_row(Floats& array, const assay_stride& stride, std::int64_t H, std::int64_t N,
                Body body) {
    for (std::int64_t b = 0; b < p_.B; ++b) {
      for (std::int64_t h = 0; h < H; ++h) {
        for (std::int64_t n = 0; n < N; ++n) body(row(stride, array.values().data(), b, h, n), n);
      }
    }
  }

  // Every query becomes a common vector plus a little noise, every key `height(j)` times that vector
  // plus noise, so that scale q.k is about height(j).
  template <class Height>
  void aligned(Height height, float noise) {
    Random random(substream(seed_, 4));
    std::vector<float> u(static_cast<std::size_t>(p_.D));
    double norm = 0;
    for (float& x : u) {
      x = static_cast<float>(random.normal());
      norm += double{x} * x;
    }
    for (float& x : u) x /= static_cast<float>(std::sqrt(norm));
    each_row(q_, p_.sq, p_.Hq, p_.Nq, [&](float* q, std::int64_t) {
      for (std::size_t d = 0; d < u.size(); ++d) q[d] = 8 * u[d] + noise * q[d];
    });
    each_row(k_, p_.sk, p_.Hkv, p_.Nk, [&](float* k, std::int64_t j) {
      const float a = height(j) / (8 * p_.scale);
      for (std::size_t d = 0; d < u.size(); ++d) k[d] = a * u[d] + noise * k[d];
    });
  }

  void structure(const std::string& kind) {
    const json& data = problem_.data;
    const auto N = static_cast<float>(std::max<std::int64_t>(p_.Nk, 1));
    if (kind == "rising" || kind == "falling") {
      const float span = data.value("span", 30.0f) * (kind == "rising" ? 1.0f : -1.0f);
      aligned([&](std::int64_t j) { return span * (static_cast<float>(j) / N - 0.5f); }, 0.1f);
    } else if (kind == "low") {
      aligned(
          [&](std::int64_t j) {
            return -1500.0f - 20.0f * static_cast<float>((j * 7) % p_.Nk) / N;
          },
          0.0f);
    } else if (kind == "one_hot") {
      const std::int64_t key = data.at("key");
      const float score = data.at("score");
      aligned([&](std::int64_t j) { return j == key ? score : 0.0f; }, 0.1f);
    } else if (kind == "zero_q") {
      std::ranges::fill(q_.values(), 0.0f);
    } else if (kind == "constant_k") {
      constant(k_, p_.sk, p_.D);
    } else if (kind == "constant_v") {
      constant(v_, p_.sv, p_.Dv);
    } else if (kind == "alternating_v") {
      each_row(v_, p_.sv, p_.Hkv, p_.Nk, [&](float* v, std::int64_t j) {
        for (std::int64_t d = 0; d < p_.Dv; ++d) v[d] += j % 2 == 0 ? 1e4f : -1e4f;
      });
    } else if (kind != "normal") {
      throw Error(fmt::format("attention: unknown data kind '{}'", kind));
    }
  }

  void constant(Floats& array, const assay_stride& stride, std::int64_t D) {
    for (std::int64_t b = 0; b < p_.B; ++b) {
      for (std::int64_t h = 0; h < p_.Hkv; ++h) {
        const float* first = row(stride, array.values().data(), b, h, 0);
        for (std::int64_t j = 1; j < p_.Nk; ++j)
          std::copy_n(first, D, row(stride, array.values().data(), b, h, j));
      }
    }
  }

  void spoil(const char* list, Floats& array, const assay_stride& stride, std::int64_t H,
             std::int64_t D, float value) {
    for (const std::int64_t n : problem_.data.value(list, std::vector<std::int64_t>{})) {
      for (std::int64_t b = 0; b < p_.B; ++b) {
        for (std::int64_t h = 0; h < H; ++h)
          std::fill_n(row(stride, array.values().data(), b, h, n), D, value);
      }
    }
  }

  const Problem& problem_;
  const fa_params& p_;
  std::uint64_t seed_;
  Floats q_, k_, v_;
};

float lift(std::int32_t dtype, std::uint16_t x) {
  return dtype == ASSAY_BF16 ? bf16_to_float(x) : f16_to_float(x);
}

// Sums over blocks of 64 one after the other, as a plain tiled implementation adds.
float blocked_sum(const float* x, std::int64_t n) {
  float sum = 0;
  for (std::int64_t j = 0; j < n; j += 64) {
    sum += Eigen::Map<const Eigen::ArrayXf>(x + j, std::min<std::int64_t>(64, n - j)).sum();
  }
  return sum;
}

}  // namespace

Problem problem_of(const CaseSpec& spec) {
  const json& j = spec.params;
  Problem out;
  fa_params& p = out.p;
  p.size = sizeof(fa_params);
  p.dtype = dtype_named(j.value("dtype", "f32"));
  out.q_len = j.value("q_len", std::vector<std::int64_t>{});
  out.k_len = j.value("k_len", out.q_len);
  if (out.q_len.size() != out.k_len.size()) {
    throw Error(fmt::format("attention: case '{}': q_len and k_len need the same number of lengths",
                            spec.name));
  }
  p.B = out.packed() ? static_cast<std::int64_t>(out.q_len.size()) : j.value("B", std::int64_t{1});
  p.Hq = j.value("Hq", std::int64_t{1});
  p.Hkv = j.value("Hkv", p.Hq);
  p.Nq = out.packed() ? std::ranges::max(out.q_len) : j.at("Nq").get<std::int64_t>();
  p.Nk = out.packed() ? std::ranges::max(out.k_len) : j.value("Nk", p.Nq);
  p.D = j.value("D", std::int64_t{64});
  p.Dv = j.value("Dv", p.D);
  const std::string layout = j.value("layout", "bhnd");
  const std::int64_t queries = out.flat().p.Nq, keys = out.flat().p.Nk;
  p.sq = strides(layout, p.Hq, queries, p.D);
  p.sk = strides(layout, p.Hkv, keys, p.D);
  p.sv = strides(layout, p.Hkv, keys, p.Dv);
  p.so = strides(layout, p.Hq, queries, p.Dv);
  if (out.packed()) p.sq.b = p.sk.b = p.sv.b = p.so.b = 0;
  p.scale = j.value("scale", 1.0f / std::sqrt(static_cast<float>(std::max<std::int64_t>(p.D, 1))));
  p.causal = j.value("causal", true) ? 1 : 0;
  p.window = j.value("window", std::int64_t{-1});
  out.softcap = j.value("softcap", 0.0f);
  out.alibi = j.value("alibi", false);
  out.sink = j.value("sink", false);
  out.kv_len = j.value("kv_len", std::vector<std::int64_t>{});
  if (!out.kv_len.empty() && static_cast<std::int64_t>(out.kv_len.size()) != p.B) {
    throw Error(fmt::format("attention: case '{}': kv_len needs B lengths", spec.name));
  }
  out.bias_poison = j.value("bias_poison", false);
  out.fp8 = j.value("fp8", false);
  if (j.contains("bias")) {
    const auto size = [&](std::size_t at, std::int64_t full) {
      return j.at("bias").at(at) == 0 ? full : std::int64_t{1};
    };
    out.bias = true;
    out.bias_shape = {sizeof(fa_bias), size(0, p.B), size(1, p.Hq), size(2, p.Nq), size(3, p.Nk)};
  }
  out.data = j.value("data", json::object());
  return out;
}

Problem Problem::flat() const {
  Problem out = *this;
  if (!packed()) return out;
  out.p.B = 1;
  out.p.Nq = first_query(p.B);
  out.p.Nk = first_key(p.B);
  out.q_len.clear();
  out.k_len.clear();
  return out;
}

std::int64_t Problem::first_query(std::int64_t b) const {
  return packed() ? std::accumulate(q_len.begin(), q_len.begin() + b, std::int64_t{0}) : 0;
}

std::int64_t Problem::first_key(std::int64_t b) const {
  return packed() ? std::accumulate(k_len.begin(), k_len.begin() + b, std::int64_t{0}) : 0;
}

std::int64_t Problem::lse_at(std::int64_t b, std::int64_t h, std::int64_t i) const {
  return packed() ? h * first_query(p.B) + first_query(b) + i : (b * p.Hq + h) * p.Nq + i;
}

fa_params told_params(const CaseSpec& spec, const Problem& problem) {
  fa_params p = problem.p;
  const json wrong = spec.params.value("override", json::object());
  p.B = wrong.value("B", p.B);
  p.Hq = wrong.value("Hq", p.Hq);
  p.Hkv = wrong.value("Hkv", p.Hkv);
  p.Nq = wrong.value("Nq", p.Nq);
  p.Nk = wrong.value("Nk", p.Nk);
  p.D = wrong.value("D", p.D);
  p.Dv = wrong.value("Dv", p.Dv);
  return p;
}

std::int64_t span_of(const assay_stride& s, std::int64_t B, std::int64_t H, std::int64_t N,
                     std::int64_t D) {
  if (B == 0 || H == 0 || N == 0 || D == 0) return 0;
  return (B - 1) * s.b + (H - 1) * s.h + (N - 1) * s.n + D;
}

Dtype dtype_of(const Problem& problem) {
  if (problem.p.dtype == ASSAY_F32) return Dtype::f32;
  return problem.p.dtype == ASSAY_BF16 ? Dtype::bf16 : Dtype::f16;
}

Range visible(const Problem& problem, std::int64_t i, std::int64_t Nq, std::int64_t L) {
  const std::int64_t diagonal = i + L - Nq;
  Range r{0, L};
  if (problem.p.causal != 0) r.hi = std::clamp<std::int64_t>(diagonal + 1, 0, L);
  if (problem.p.window > 0) r.lo = std::clamp<std::int64_t>(diagonal - problem.p.window + 1, 0, L);
  return r;
}

double visible_pairs(const Problem& problem) {
  std::int64_t pairs = 0;
  for (std::int64_t b = 0; b < problem.p.B; ++b) {
    const std::int64_t Nq = problem.queries_of(b), L = problem.keys_of(b);
    for (std::int64_t i = 0; i < Nq; ++i) {
      const Range r = visible(problem, i, Nq, L);
      pairs += std::max<std::int64_t>(r.hi - r.lo, 0);
    }
  }
  return static_cast<double>(pairs * problem.p.Hq);
}

void fill_qkv(const Problem& problem, std::uint64_t seed, const BufferView& q, const BufferView& k,
              const BufferView& v, const BufferView& scales) {
  Problem flat = problem.flat();
  if (!problem.fp8) return Inputs(flat, seed, q, k, v).make();
  flat.p.dtype = ASSAY_F32;
  const BufferView stored[] = {q, k, v};
  std::vector<float> values[3];
  BufferView views[3];
  for (int t = 0; t < 3; ++t) {
    values[t].resize(stored[t].bytes);
    views[t] = {values[t].data(), values[t].size() * sizeof(float)};
  }
  Inputs(flat, seed, views[0], views[1], views[2]).make();
  Random random(substream(seed, 7));
  for (int t = 0; t < 3; ++t) {
    // The largest values fill the format's range. 8 significant bits: scaled values are exact in fp32.
    const float scale = std::ldexp(static_cast<float>(128 + random.below(128)), -14 - t);
    scales.as<float>()[t] = scale;
    std::ranges::transform(values[t], stored[t].as<std::uint8_t>(),
                           [&](float x) { return float_to_e4m3(x / scale); });
  }
}

float e4m3_to_float(std::uint8_t x) {
  const int exponent = x >> 3 & 15, fraction = x & 7;
  if (exponent == 15 && fraction == 7) return kNan;
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(fraction), -9)
                              : std::ldexp(static_cast<float>(fraction + 8), exponent - 10);
  return (x & 0x80) != 0 ? -magnitude : magnitude;
}

std::uint8_t float_to_e4m3(float f) {
  const int sign = std::signbit(f) ? 0x80 : 0;
  if (std::isnan(f)) return static_cast<std::uint8_t>(sign | 0x7f);
  const float a = std::min(std::abs(f), 448.0f);
  const int exponent = a < 0x1p-6f ? -6 : std::ilogb(a);
  // Eighths of the binade; 16 of them carry into the exponent, and below 2^-6 there is no leading one.
  const int eighths = static_cast<int>(std::nearbyint(std::ldexp(a, 3 - exponent)));
  return static_cast<std::uint8_t>(sign | ((exponent + 6) * 8 + eighths));
}

void fill_array(const Problem& problem, std::uint64_t seed, const BufferView& view, float sigma) {
  if (problem.p.dtype == ASSAY_F32) return fill_normal(view.span<float>(), seed, 0, sigma);
  if (problem.p.dtype == ASSAY_BF16) {
    return fill_normal_bf16(view.span<std::uint16_t>(), seed, 0, sigma);
  }
  std::vector<float> values(view.bytes / 2);
  fill_normal(values, seed, 0, sigma);
  std::ranges::transform(values, view.as<std::uint16_t>(), float_to_f16);
}

void fill_extras(const Problem& problem, std::uint64_t seed, const BufferView& alibi,
                 const BufferView& sink, const BufferView& kv_len) {
  Random random(substream(seed, 9));
  for (float& slope : alibi.span<float>()) slope = static_cast<float>(random.uniform(0.01, 0.5));
  for (float& s : sink.span<float>()) s = static_cast<float>(random.uniform(-1, 3));
  std::copy_n(problem.kv_len.begin(), kv_len.span<std::int64_t>().size(),
              kv_len.as<std::int64_t>());
}

void fill_lengths(const Problem& problem, const BufferView& cu_q, const BufferView& cu_k) {
  if (!problem.packed()) return;
  for (std::int64_t b = 0; b <= problem.p.B; ++b) {
    cu_q.as<std::int64_t>()[b] = problem.first_query(b);
    cu_k.as<std::int64_t>()[b] = problem.first_key(b);
  }
}

void fill_bias(const Problem& problem, std::uint64_t seed, const BufferView& bias) {
  fill_normal(bias.span<float>(), substream(seed, 6), 0, 2);
  if (!problem.bias_poison) return;
  const fa_params& p = problem.p;
  for (std::int64_t row = 0; row < p.B * p.Hq * p.Nq; ++row) {
    const std::int64_t b = row / (p.Hq * p.Nq), h = row / p.Nq % p.Hq, i = row % p.Nq;
    const Range r = visible(problem, i, p.Nq, problem.keys_of(b));
    for (std::int64_t j = 0; j < p.Nk; ++j) {
      if (j >= r.lo && j < r.hi) continue;
      bias.as<float>()[problem.bias_row(b, h, i) * problem.bias_shape.Nk + problem.bias_column(j)] =
          kNan;
    }
  }
}

RowsF head_rows(std::int32_t dtype, const void* data, std::int64_t first, std::int64_t step,
                std::int64_t N, std::int64_t D) {
  RowsF out(N, D);
  for (std::int64_t n = 0; n < N; ++n) {
    const std::int64_t at = first + n * step;
    if (dtype == ASSAY_F32) {
      std::memcpy(out.data() + n * D, static_cast<const float*>(data) + at,
                  static_cast<std::size_t>(D) * sizeof(float));
    } else {
      const auto* x = static_cast<const std::uint16_t*>(data) + at;
      for (std::int64_t d = 0; d < D; ++d) out(n, d) = lift(dtype, x[d]);
    }
  }
  return out;
}

double widen(std::int32_t dtype, const void* data, std::int64_t at) {
  if (dtype == ASSAY_F32) return static_cast<double>(static_cast<const float*>(data)[at]);
  return static_cast<double>(lift(dtype, static_cast<const std::uint16_t*>(data)[at]));
}

float round_like(std::int32_t dtype, float x) {
  if (dtype == ASSAY_F32) return x;
  return dtype == ASSAY_BF16 ? bf16_to_float(float_to_bf16(x)) : f16_to_float(float_to_f16(x));
}

double storage_eps(std::int32_t dtype) {
  if (dtype == ASSAY_F32) return 0;
  return dtype == ASSAY_BF16 ? kEpsBf16 : kEpsF16;
}

Head load_head(const Problem& problem, std::int64_t b, std::int64_t h, BufferViews qkv,
               const Extras& extras) {
  const fa_params& p = problem.p;
  Head head;
  head.problem = &problem;
  head.b = b;
  head.h = h;
  head.queries = problem.queries_of(b);
  head.keys = problem.keys_of(b);
  head.bias = extras.bias;
  const std::int64_t kv = h / problem.group();
  const auto rows = [&](int t, std::int64_t at, std::int64_t step, std::int64_t N, std::int64_t D) {
    const void* data = qkv[static_cast<std::size_t>(t)].data;
    if (!problem.fp8) return head_rows(p.dtype, data, at, step, N, D);
    RowsF out(N, D);
    for (std::int64_t n = 0; n < N; ++n) {
      const std::uint8_t* x = static_cast<const std::uint8_t*>(data) + at + n * step;
      for (std::int64_t d = 0; d < D; ++d) out(n, d) = e4m3_to_float(x[d]) * extras.scales[t];
    }
    return out;
  };
  head.q = rows(0, problem.query_at(p.sq, b, h, 0), p.sq.n, head.queries, p.D);
  head.k = rows(1, problem.key_at(p.sk, b, kv, 0), p.sk.n, head.keys, p.D);
  head.v = rows(2, problem.key_at(p.sv, b, kv, 0), p.sv.n, head.keys, p.Dv);
  head.finite = tame(head.q) && tame(head.k) && tame(head.v);
  if (extras.alibi != nullptr) head.slope = extras.alibi[h];
  if (extras.sink != nullptr) head.sink = extras.sink[h];
  return head;
}

bool tame(const RowsF& m) { return m.size() == 0 || (m.array().abs() < 1e15f).all(); }

void make_tile(const Head& head, std::int64_t first, std::int64_t rows, const float* lse, Tile& t) {
  const Problem& problem = *head.problem;
  const fa_params& p = problem.p;
  t.first = first;
  t.rows = rows;
  t.range.clear();
  t.lo = head.keys;
  t.hi = 0;
  for (std::int64_t i = first; i < first + rows; ++i) {
    const Range r = visible(problem, i, head.queries, head.keys);
    t.range.push_back(r);
    if (r.lo >= r.hi) continue;
    t.lo = std::min(t.lo, r.lo);
    t.hi = std::max(t.hi, r.hi);
  }
  t.lo = std::min(t.lo, t.hi);
  const std::int64_t n = t.hi - t.lo;
  const auto q = head.q.middleRows(first, rows);
  const auto k = head.k.middleRows(t.lo, n);
  const auto scale = static_cast<double>(p.scale);
  t.p.noalias() = q.cast<double>() * k.cast<double>().transpose();
  t.p *= scale;
  t.p32.noalias() = q * k.transpose();
  t.p32 *= p.scale;
  const RowsF magnitude = (q.cwiseAbs() * k.cwiseAbs().transpose()) * std::abs(p.scale);
  if (problem.softcap > 0) {
    const double cap = problem.softcap;
    t.p = (t.p.array() / cap).tanh();
    t.slope = 1 - t.p.array().square();
    t.p *= cap;
    t.p32 = (t.p32.array() / problem.softcap).tanh() * problem.softcap;
  }
  const auto size = static_cast<std::size_t>(rows);
  t.lse.assign(size, -kInf);
  t.lse32.assign(size, -kInf);
  t.sum32.assign(size, 0);
  t.conditioning.assign(size, 0);
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const Range r = t.range[at];
    const std::int64_t lo = r.lo - t.lo, m = std::max<std::int64_t>(r.hi - r.lo, 0);
    if (m == 0) {
      t.p.row(i).setZero();
      t.p32.row(i).setZero();
      if (problem.sink) t.lse[at] = t.lse32[at] = static_cast<double>(head.sink);
      continue;
    }
    double bias = 0;
    if (head.bias != nullptr) {
      const float* values =
          head.bias + problem.bias_row(head.b, head.h, first + i) * problem.bias_shape.Nk;
      for (std::int64_t j = 0; j < m; ++j) {
        const float x = values[problem.bias_column(r.lo + j)];
        t.p(i, lo + j) += static_cast<double>(x);
        t.p32(i, lo + j) += x;
        bias = std::max(bias, std::abs(static_cast<double>(x)));
      }
    }
    if (problem.alibi) {
      const std::int64_t diagonal = first + i + head.keys - head.queries;
      for (std::int64_t j = 0; j < m; ++j) {
        const auto distance = static_cast<double>(std::abs(diagonal - (r.lo + j)));
        t.p(i, lo + j) -= static_cast<double>(head.slope) * distance;
        t.p32(i, lo + j) -= head.slope * static_cast<float>(distance);
        bias = std::max(bias, std::abs(static_cast<double>(head.slope)) * distance);
      }
    }
    auto s = t.p.row(i).segment(lo, m);
    auto s32 = t.p32.row(i).segment(lo, m);
    t.conditioning[at] = static_cast<double>(magnitude.row(i).segment(lo, m).maxCoeff()) + bias;
    double max = s.maxCoeff<Eigen::PropagateNaN>();
    float max32 = s32.maxCoeff<Eigen::PropagateNaN>();
    if (problem.sink) {
      max = std::isnan(max) ? max : std::max(max, static_cast<double>(head.sink));
      max32 = std::isnan(max32) ? max32 : std::max(max32, head.sink);
    }
    s = (s.array() - max).exp();
    if (lse != nullptr) max32 = lse[first + i];
    s32 = (s32.array() - max32).exp();
    double sum = s.sum();
    float sum32 = blocked_sum(&t.p32(i, lo), m);
    if (problem.sink) {
      sum += std::exp(static_cast<double>(head.sink) - max);
      sum32 += std::exp(head.sink - max32);
    }
    s /= sum;
    t.lse[at] = max + std::log(sum);
    t.sum32[at] = static_cast<double>(sum32);
    t.lse32[at] = static_cast<double>(max32 + std::log(sum32));
    t.p.row(i).head(lo).setZero();
    t.p.row(i).tail(n - lo - m).setZero();
    t.p32.row(i).head(lo).setZero();
    t.p32.row(i).tail(n - lo - m).setZero();
  }
}

void check_gaps(const Problem& problem, const assay_stride& s, std::int64_t H, std::int64_t N,
                std::int64_t D, const BufferView& output, const char* name, CheckResult& result) {
  const std::int64_t size = problem.p.dtype == ASSAY_F32 ? 4 : 2;
  const fa_params p = problem.flat().p;
  const auto elements = static_cast<std::int64_t>(output.bytes) / size;
  if (elements == p.B * H * N * D) return;
  std::vector<char> written(static_cast<std::size_t>(elements), 0);
  for (std::int64_t row = 0; row < p.B * H * N; ++row) {
    const std::int64_t b = row / (H * N), h = row / N % H, n = row % N;
    std::fill_n(written.begin() + b * s.b + h * s.h + n * s.n, D, char{1});
  }
  for (std::int64_t i = 0; i < elements; ++i) {
    if (written[static_cast<std::size_t>(i)] != 0) continue;
    const std::uint16_t* halves = output.as<std::uint16_t>() + i * size / 2;
    if (std::all_of(halves, halves + size / 2,
                    [](std::uint16_t x) { return (x & 0xfff1) == 0xfff1; }))
      continue;
    return fail(result,
                fmt::format("{}: element {} lies between rows and was overwritten", name, i));
  }
}

std::string shape_text(const Problem& problem) {
  const fa_params& p = problem.p;
  std::string text = fmt::format("B={} H={}", p.B, p.Hq);
  if (p.Hkv != p.Hq) text += fmt::format("/{}", p.Hkv);
  const char* most = problem.packed() ? "<=" : "=";
  text += p.Nq == p.Nk ? fmt::format(" N{}{}", most, p.Nq)
                       : fmt::format(" Nq{}{} Nk{}{}", most, p.Nq, most, p.Nk);
  text += p.D == p.Dv ? fmt::format(" D={}", p.D) : fmt::format(" D={} Dv={}", p.D, p.Dv);
  if (p.causal != 0) text += " causal";
  if (p.window > 0) text += fmt::format(" window={}", p.window);
  if (problem.fp8) text += " e4m3";
  if (p.dtype != ASSAY_F32) text += p.dtype == ASSAY_BF16 ? " bf16" : " f16";
  return text;
}

}  // namespace assay::attention
