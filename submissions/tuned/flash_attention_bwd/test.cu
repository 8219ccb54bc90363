// The entrant's own tests on a device: dq, dk and dv against the formula in double, for heads side
// by side or one after the other, groups, more keys than queries and fewer, scores far from 0 and
// gaps that must survive. Returns 0 if the implementation linked with it is accepted.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "abi.h"

namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
constexpr float kGap = -77;  // lies between the rows of a gradient

struct Case {
  std::int64_t B, Hq, Hkv, Nq, Nk, D;
  bool causal = true;
  float scale = 0.2f, offset = 0;  // offset: of all elements of k
  std::int64_t pad = 0;            // elements between rows
  bool interleaved = false;        // [B, N, H, D] in memory, else [B, H, N, D]
  bool twice = false, flat_v = false;
  float dout = 1, q = 1;  // the size of their elements
};

std::size_t index(std::int64_t n) { return static_cast<std::size_t>(n); }

// Rows on the host, and their copy on the device.
struct Tensor {
  std::int64_t H, N, D;
  assay_stride stride;
  Floats host;
  float* device = nullptr;

  Tensor(const Case& c, std::int64_t heads, std::int64_t positions)
      : H(heads), N(positions), D(c.D) {
    const std::int64_t row = D + c.pad;
    stride = c.interleaved ? assay_stride{H * N * row, row, H * row}
                           : assay_stride{H * N * row, N * row, row};
    host.assign(index(c.B * H * N * row + 1), kGap);
  }
  Tensor(const Tensor&) = delete;
  ~Tensor() { cudaFree(device); }

  float* row(std::int64_t b, std::int64_t h, std::int64_t n) {
    return &host[index(b * stride.b + h * stride.h + n * stride.n)];
  }
  template <class Make>
  void fill(std::int64_t B, Make make) {
    for (std::int64_t b = 0; b < B; ++b) {
      for (std::int64_t h = 0; h < H; ++h) {
        for (std::int64_t n = 0; n < N; ++n) std::generate_n(row(b, h, n), D, make);
      }
    }
  }
  bool upload() {
    return cudaMalloc(&device, host.size() * sizeof(float)) == cudaSuccess &&
           cudaMemcpy(device, host.data(), host.size() * sizeof(float), cudaMemcpyHostToDevice) ==
               cudaSuccess;
  }
  bool download() {
    return cudaMemcpy(host.data(), device, host.size() * sizeof(float), cudaMemcpyDeviceToHost) ==
           cudaSuccess;
  }
  bool gaps_survive(std::int64_t B, std::int64_t pad) const {
    return std::count(host.begin(), host.end(), kGap) == B * H * N * pad + 1;
  }
};

// Sums of terms, and of their sizes.
struct Sums {
  Doubles value, size;
  explicit Sums(std::int64_t n) : value(index(n)), size(index(n)) {}
  void add(std::int64_t at, double term, double size_of_term) {
    value[index(at)] += term;
    size[index(at)] += size_of_term;
  }
  bool are(const float* got, std::int64_t at, std::int64_t n, double tolerance) const {
    for (std::int64_t d = 0; d < n; ++d) {
      const std::size_t i = index(at + d);
      if (!(std::abs(got[d] - value[i]) <= tolerance * size[i])) return false;
    }
    return true;
  }
};

struct Problem {
  const Case& c;
  Tensor dout, q, k, v, o, lse, dq, dk, dv;

  explicit Problem(const Case& of)
      : c(of),
        dout(c, c.Hq, c.Nq),
        q(c, c.Hq, c.Nq),
        k(c, c.Hkv, c.Nk),
        v(c, c.Hkv, c.Nk),
        o(c, c.Hq, c.Nq),
        lse(of_lse(c), c.Hq, c.Nq),
        dq(c, c.Hq, c.Nq),
        dk(c, c.Hkv, c.Nk),
        dv(c, c.Hkv, c.Nk) {
    std::mt19937 random(static_cast<unsigned>(c.Nq * 7919 + c.Nk * 31 + c.D));
    std::normal_distribution<float> normal;
    dout.fill(c.B, [&] { return c.dout * (0.3f + normal(random)); });
    q.fill(c.B, [&] { return c.q * (0.5f + normal(random)); });
    k.fill(c.B, [&] { return c.offset + normal(random); });
    v.fill(c.B, [&] { return c.flat_v ? 1.5f : 1 + normal(random); });
    for_each_query([&](std::int64_t b, std::int64_t h, std::int64_t i) { forward(b, h, i); });
  }
  static Case of_lse(Case c) {
    c.D = 1;
    c.pad = 0;
    c.interleaved = false;
    return c;
  }

  template <class Do>
  void for_each_query(Do act) const {
    for (std::int64_t b = 0; b < c.B; ++b) {
      for (std::int64_t h = 0; h < c.Hq; ++h) {
        for (std::int64_t i = 0; i < c.Nq; ++i) act(b, h, i);
      }
    }
  }
  std::int64_t keys_of(std::int64_t i) const {
    return c.causal ? std::clamp<std::int64_t>(i + 1 + c.Nk - c.Nq, 0, c.Nk) : c.Nk;
  }
  std::int64_t kv(std::int64_t h) const { return h / (c.Hq / c.Hkv); }

  double score(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    double s = 0;
    for (std::int64_t d = 0; d < c.D; ++d)
      s += static_cast<double>(c.scale) * q.row(b, h, i)[d] * k.row(b, kv(h), j)[d];
    return s;
  }

  void forward(std::int64_t b, std::int64_t h, std::int64_t i) {
    Doubles s, out(index(c.D));
    double top = -INFINITY, sum = 0;
    for (std::int64_t j = 0; j < keys_of(i); ++j) {
      s.push_back(score(b, h, i, j));
      top = std::max(top, s.back());
    }
    for (double& x : s) sum += x = std::exp(x - top);
    for (std::size_t j = 0; j < s.size(); ++j) {
      for (std::int64_t d = 0; d < c.D; ++d)
        out[index(d)] += s[j] / sum * v.row(b, kv(h), static_cast<std::int64_t>(j))[d];
    }
    std::copy(out.begin(), out.end(), o.row(b, h, i));
    *lse.row(b, h, i) = static_cast<float>(s.empty() ? top : top + std::log(sum));
  }

  bool run(assay_ctx* ctx) {
    for (Tensor* t : {&dout, &q, &k, &v, &o, &lse, &dq, &dk, &dv}) {
      if (!t->upload()) return false;
    }
    fa_params p{};
    p.size = sizeof(p);
    p.dtype = ASSAY_F32;
    p.B = c.B, p.Hq = c.Hq, p.Hkv = c.Hkv, p.Nq = c.Nq, p.Nk = c.Nk;
    p.D = p.Dv = c.D;
    p.sq = q.stride, p.sk = k.stride, p.sv = v.stride, p.so = o.stride;
    p.scale = c.scale;
    p.causal = c.causal ? 1 : 0;
    for (int calls = c.twice ? 2 : 1; calls > 0; --calls) {
      if (fa_backward(ctx, &p, dout.device, q.device, k.device, v.device, o.device, lse.device,
                      dq.device, dk.device, dv.device) != ASSAY_OK)
        return false;
    }
    return cudaStreamSynchronize(static_cast<cudaStream_t>(ctx->stream)) == cudaSuccess &&
           dq.download() && dk.download() && dv.download();
  }

  bool is_right() {
    const std::int64_t D = c.D;
    Sums want_k(c.B * c.Hkv * c.Nk * D), want_v(c.B * c.Hkv * c.Nk * D);
    bool right = true;
    double largest = 10;  // of the sizes of scores
    for_each_query([&](std::int64_t b, std::int64_t h, std::int64_t i) {
      Sums want_q(D);
      const float *g = dout.row(b, h, i), *query = q.row(b, h, i), *out = o.row(b, h, i);
      double delta = 0, size_of_delta = 0;
      for (std::int64_t d = 0; d < D; ++d) {
        delta += static_cast<double>(g[d]) * out[d];
        size_of_delta += std::abs(static_cast<double>(g[d]) * out[d]);
      }
      for (std::int64_t j = 0; j < keys_of(i); ++j) {
        const float *key = k.row(b, kv(h), j), *value = v.row(b, kv(h), j);
        double s = 0, dp = 0, size = size_of_delta, size_of_s = 10;
        for (std::int64_t d = 0; d < D; ++d) {
          const double term = static_cast<double>(c.scale) * query[d] * key[d];
          s += term;
          size_of_s += std::abs(term);
          dp += static_cast<double>(g[d]) * value[d];
          size += std::abs(static_cast<double>(g[d]) * value[d]);
        }
        largest = std::max(largest, size_of_s);
        const double weight = std::exp(s - *lse.row(b, h, i));
        const double ds = weight * (dp - delta) * c.scale;
        const double size_of_ds = weight * size * std::abs(c.scale) + 1e-9;
        const std::int64_t at = ((b * c.Hkv + kv(h)) * c.Nk + j) * D;
        for (std::int64_t d = 0; d < D; ++d) {
          want_q.add(d, ds * key[d], size_of_ds * std::abs(key[d]));
          want_k.add(at + d, ds * query[d], size_of_ds * std::abs(query[d]));
          want_v.add(at + d, weight * g[d], (weight + 1e-9) * std::abs(g[d]));
        }
      }
      right = right && want_q.are(dq.row(b, h, i), 0, D, 3e-7 * largest);
    });
    for (std::int64_t b = 0; b < c.B; ++b) {
      for (std::int64_t h = 0; h < c.Hkv; ++h) {
        for (std::int64_t j = 0; j < c.Nk; ++j) {
          const std::int64_t at = ((b * c.Hkv + h) * c.Nk + j) * D;
          right = right && want_k.are(dk.row(b, h, j), at, D, 3e-7 * largest) &&
                  want_v.are(dv.row(b, h, j), at, D, 3e-7 * largest);
        }
      }
    }
    return right && dq.gaps_survive(c.B, c.pad) && dk.gaps_survive(c.B, c.pad) &&
           dv.gaps_survive(c.B, c.pad);
  }
};

bool passes(assay_ctx* ctx, const Case& c) {
  Problem problem(c);
  return problem.run(ctx) && problem.is_right();
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  std::vector<Case> cases = {
      {2, 4, 2, 37, 37, 32},         // groups, and an end that no tile has
      {1, 2, 1, 9, 70, 64},          // more keys than queries
      {1, 1, 1, 40, 13, 32},         // queries that see nothing
      {2, 2, 2, 5, 100, 32, false},  // every query sees every key
      {2, 6, 2, 1, 45, 32},          // one query of grouped heads
      {1, 1, 1, 20, 20, 128},        //
      {1, 2, 2, 17, 65, 32, true, -0.7f},
      {1, 1, 1, 33, 60, 32, false, 1, -9},  // scores far below 0
      {1, 1, 1, 33, 60, 32, false, 1, 9},   // and far above
      {1, 2, 1, 3, 0, 32},
  };
  Case side_by_side{2, 4, 2, 21, 34, 32}, padded{2, 2, 2, 18, 18, 64}, twice{1, 2, 1, 66, 66, 32};
  side_by_side.interleaved = true;
  side_by_side.pad = 4;
  padded.pad = 3;
  twice.twice = true;
  Case flat{1, 2, 2, 24, 40, 32, false}, spiky{1, 2, 2, 40, 40, 32}, large{1, 1, 1, 30, 30, 32};
  flat.flat_v = true;
  spiky.q = 20;
  large.dout = 1e4f;
  cases.insert(cases.end(), {side_by_side, padded, twice, flat, spiky, large});
  for (const Case& c : cases) {
    if (!passes(ctx, c)) return 1;
  }
  return 0;
}
