// The entrant's own tests on a device: o and lse against a double formula, for heads side by side
// in a row or one after the other, more keys than queries and fewer, groups, and values and gaps
// that must not matter. Returns 0 if the implementation linked with it is accepted.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "abi.h"

namespace {

using Floats = std::vector<float>;
constexpr float kGap = -77;  // lies between the rows of o

struct Case {
  std::int64_t B, Hq, Hkv, Nq, Nk, D;
  bool causal = true;
  float scale = 0.2f, offset = 0;  // offset: of all elements of k
  std::int64_t pad = 0;            // elements between rows
  bool interleaved = false;        // [B, N, H, D] in memory, else [B, H, N, D]
  bool wants_lse = true, hidden_nan = false;
};

std::size_t index(std::int64_t n) { return static_cast<std::size_t>(n); }

// An array of B x H x N rows on the host, and its copy on the device.
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
};

// What a query sees: its first `keys` keys. False where o or lse is too far from it.
bool row_is_right(const Case& c, const float* q, Tensor& k, Tensor& v, std::int64_t b,
                  std::int64_t head, std::int64_t keys, const float* o, const float* lse) {
  std::vector<double> weights(index(std::max<std::int64_t>(keys, 0)));
  double top = -INFINITY, sum = 0, size = 10;
  for (std::int64_t j = 0; j < keys; ++j) {
    double score = 0, terms = 0;
    for (std::int64_t d = 0; d < c.D; ++d) {
      const double term = static_cast<double>(c.scale) * q[d] * k.row(b, head, j)[d];
      score += term;
      terms += std::abs(term);
    }
    weights[index(j)] = score;
    top = std::max(top, score);
    size = std::max(size, terms);
  }
  for (double& w : weights) sum += w = std::exp(w - top);
  const double tolerance = 2e-6 * size;
  if (lse != nullptr) {
    if (keys <= 0 && *lse != -INFINITY) return false;
    if (keys > 0 && !(std::abs(*lse - (top + std::log(sum))) <= tolerance)) return false;
  }
  for (std::int64_t d = 0; d < c.D; ++d) {
    double want = 0, terms = 1e-3;
    for (std::int64_t j = 0; j < keys; ++j) {
      const double term = weights[index(j)] / sum * v.row(b, head, j)[d];
      want += term;
      terms += std::abs(term);
    }
    if (!(std::abs(o[d] - want) <= tolerance * terms)) return false;
  }
  return true;
}

bool gaps_survive(const Case& c, Tensor& o) {
  std::int64_t gaps = 0;
  for (const float x : o.host) gaps += x == kGap ? 1 : 0;
  return gaps == c.B * o.H * o.N * c.pad + 1;
}

bool passes(assay_ctx* ctx, const Case& c) {
  std::mt19937 random(static_cast<unsigned>(c.Nq * 7919 + c.Nk * 31 + c.D));
  std::normal_distribution<float> normal;
  Tensor q(c, c.Hq, c.Nq), k(c, c.Hkv, c.Nk), v(c, c.Hkv, c.Nk), o(c, c.Hq, c.Nq);
  q.fill(c.B, [&] { return 1 + normal(random); });
  k.fill(c.B, [&] { return c.offset + normal(random); });
  v.fill(c.B, [&] { return 1 + normal(random); });
  // Only the last query sees the last key: the others must not notice it.
  const std::int64_t queries = c.hidden_nan ? c.Nq - 1 : c.Nq;
  if (c.hidden_nan) {
    for (std::int64_t h = 0; h < c.Hkv; ++h) {
      *k.row(0, h, c.Nk - 1) = NAN;
      std::fill_n(v.row(0, h, c.Nk - 1), c.D, NAN);
    }
  }
  Case flat = c;
  flat.D = 1;
  flat.pad = 0;
  flat.interleaved = false;
  Tensor lse(flat, c.Hq, c.Nq);
  if (!q.upload() || !k.upload() || !v.upload() || !o.upload() || !lse.upload()) return false;

  fa_params p{};
  p.size = sizeof(p);
  p.dtype = ASSAY_F32;
  p.B = c.B;
  p.Hq = c.Hq;
  p.Hkv = c.Hkv;
  p.Nq = c.Nq;
  p.Nk = c.Nk;
  p.D = p.Dv = c.D;
  p.sq = q.stride;
  p.sk = k.stride;
  p.sv = v.stride;
  p.so = o.stride;
  p.scale = c.scale;
  p.causal = c.causal ? 1 : 0;
  if (fa_forward(ctx, &p, q.device, k.device, v.device, o.device,
                 c.wants_lse ? lse.device : nullptr) != ASSAY_OK ||
      cudaStreamSynchronize(static_cast<cudaStream_t>(ctx->stream)) != cudaSuccess ||
      !o.download() || !lse.download()) {
    return false;
  }
  for (std::int64_t b = 0; b < c.B; ++b) {
    for (std::int64_t h = 0; h < c.Hq; ++h) {
      for (std::int64_t i = 0; i < queries; ++i) {
        const std::int64_t keys = c.causal ? std::min(c.Nk, i + 1 + c.Nk - c.Nq) : c.Nk;
        if (!row_is_right(c, q.row(b, h, i), k, v, b, h / (c.Hq / c.Hkv), keys, o.row(b, h, i),
                          c.wants_lse ? lse.row(b, h, i) : nullptr)) {
          return false;
        }
      }
    }
  }
  return gaps_survive(c, o);
}

// A call that must be refused, and leave o alone.
bool refuses(assay_ctx* ctx, std::int64_t Hkv, std::int64_t Nk) {
  const Case c{1, 4, 2, 3, 3, 32};
  Tensor q(c, 4, 3), k(c, 2, 3), v(c, 2, 3), o(c, 4, 3);
  if (!q.upload() || !k.upload() || !v.upload() || !o.upload()) return false;
  const fa_params p{sizeof(p), ASSAY_F32, 1,        4,        Hkv,  3, Nk, 32, 32,
                    q.stride,  k.stride,  v.stride, o.stride, 0.2f, 1, -1, 0};
  if (fa_forward(ctx, &p, q.device, k.device, v.device, o.device, nullptr) != ASSAY_EINVAL)
    return false;
  return o.download() &&
         std::all_of(o.host.begin(), o.host.end(), [](float x) { return x == kGap; });
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  std::vector<Case> cases = {
      {2, 4, 2, 37, 37, 32},         // groups, and an end that no tile has
      {1, 2, 1, 9, 70, 64},          // more keys than queries
      {1, 1, 1, 40, 13, 32},         // queries that see nothing
      {2, 2, 2, 5, 130, 32, false},  // every query sees every key
      {2, 6, 2, 1, 45, 32},          // one query of grouped heads
      {1, 1, 1, 20, 20, 128},        //
      {1, 2, 2, 17, 65, 32, true, -0.7f},
      {1, 2, 2, 17, 65, 32, true, 0},
      {1, 1, 1, 33, 100, 32, false, 1, -9},  // scores far below 0
      {1, 1, 1, 33, 100, 32, false, 1, 9},   // and far above
      {1, 2, 1, 3, 0, 32},
  };
  Case side_by_side{2, 4, 2, 21, 34, 32}, padded{2, 2, 2, 18, 18, 64}, one{2, 4, 1, 1, 30, 32};
  side_by_side.interleaved = one.interleaved = true;
  side_by_side.pad = 4;
  padded.pad = 3;
  Case no_lse{1, 2, 2, 12, 12, 32}, hidden{1, 2, 2, 30, 30, 32};
  no_lse.wants_lse = false;
  hidden.hidden_nan = true;
  cases.insert(cases.end(), {side_by_side, padded, one, no_lse, hidden});
  for (const Case& c : cases) {
    if (!passes(ctx, c)) return 1;
  }
  return refuses(ctx, 3, 3) && refuses(ctx, 2, -1) ? 0 : 1;
}
