// The entrant's own tests: blocks against the format's description, the linear layer against sums
// in double, logits against a forward pass written out, and small trainings judged by the logits of
// their blobs. Returns 0 if the implementation linked with it is accepted.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "abi.h"

namespace {

using Vector = std::vector<double>;
using Bytes = std::vector<std::uint8_t>;

double scale_of(const std::uint8_t* block) {
  const int exponent = block[1] >> 2, fraction = (block[1] & 3) * 256 + block[0];
  return exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
}

int code_of(const std::uint8_t* block, int j) { return block[2 + j / 4] >> (j % 4 * 2) & 3; }

// The scale must be a nearest one, the codes those of the scale.
bool good_block(const std::uint8_t* block, const float* w) {
  double mean = 0;
  for (int j = 0; j < 128; ++j) mean += std::abs(static_cast<double>(w[j])) / 128;
  mean = std::min(mean, 65504.0);
  const double s = scale_of(block);
  const unsigned bits = block[0] + 256u * block[1];
  if (bits > 0x7bff) return false;
  for (const unsigned other : {bits - 1, bits + 1}) {
    if (other > 0x7bff) continue;
    const std::uint8_t neighbour[2] = {static_cast<std::uint8_t>(other),
                                       static_cast<std::uint8_t>(other >> 8)};
    const double distance = std::abs(scale_of(neighbour) - mean), own = std::abs(s - mean);
    if (distance < own || (distance == own && bits % 2 == 1)) return false;
  }
  for (int j = 0; j < 128; ++j) {
    const int code = s > 0 && std::abs(static_cast<double>(w[j])) > s / 2 ? (w[j] > 0 ? 2 : 0) : 1;
    if (code_of(block, j) != code) return false;
  }
  return true;
}

bool quantizes(assay_ctx* ctx, const std::vector<float>& w, std::int64_t rows, std::int64_t cols) {
  Bytes blocks(static_cast<std::size_t>(rows * cols / 128 * 34));
  if (tt_quantize(ctx, rows, cols, w.data(), blocks.data()) != ASSAY_OK) return false;
  std::vector<float> back(w.size());
  if (tt_dequantize(ctx, rows, cols, blocks.data(), back.data()) != ASSAY_OK) return false;
  for (std::size_t b = 0; b < w.size() / 128; ++b) {
    if (!good_block(&blocks[b * 34], &w[b * 128])) return false;
    for (int j = 0; j < 128; ++j) {
      const double value = (code_of(&blocks[b * 34], j) - 1) * scale_of(&blocks[b * 34]);
      if (back[b * 128 + static_cast<std::size_t>(j)] != static_cast<float>(value)) return false;
    }
  }
  return true;
}

bool blocks_are_right(assay_ctx* ctx) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (const float sigma : {1.0f, 1e-9f, 4e-6f, 0.0f, 1e6f, 1e-3f}) {
    std::vector<float> w(3 * 256);
    for (std::size_t i = 0; i < w.size(); ++i)
      w[i] = normal(random) * sigma * std::exp2(static_cast<float>(i / 128));
    if (!quantizes(ctx, w, 3, 256)) return false;
  }
  std::vector<float> ties(256), outlier(128, 1.0f), rounded(128),
      half_way(128, 1.0f + 3 * 0x1p-11f);
  for (std::size_t i = 0; i < ties.size(); ++i)
    ties[i] = (i % 2 == 0 ? 0.5f : 1.5f) * (i % 3 == 0 ? -1.0f : 1.0f);
  outlier[7] = 50;
  half_way[0] = 1.0f + 5 * 0x1p-11f;  // mean 1 + (3 + 1 / 64) 2^-11: not a tie
  // Means a little above a half-precision number, with weights between the two halves.
  for (std::size_t i = 0; i < 128; ++i)
    rounded[i] = i < 40 ? 0.50008f : static_cast<float>((128 * 1.0003 - 40 * 0.50008) / 88);
  std::vector<float> twice(128, 1.0f + 5 * 0x1p-11f);  // rounded through fp32, a tie
  twice[0] += 0x1p-23f;
  return quantizes(ctx, ties, 2, 128) && quantizes(ctx, outlier, 1, 128) &&
         quantizes(ctx, rounded, 1, 128) && quantizes(ctx, half_way, 1, 128) &&
         quantizes(ctx, twice, 1, 128);
}

bool refuses(assay_ctx* ctx) {
  std::vector<float> w(600);
  Bytes blocks(400);
  tt_config c{sizeof(tt_config), 64, 200, 1, 4, 2, 32, 128, 16, 1, 1e4f, 1e-6f};
  return tt_quantize(ctx, 3, 200, w.data(), blocks.data()) == ASSAY_EINVAL &&
         tt_blob_bytes(&c) == 0;
}

bool linear_is_right(assay_ctx* ctx) {
  constexpr std::size_t M = 9, N = 5, K = 256;
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  std::vector<float> x(M * K), dy(M * N), latent(N * K), w(N * K), y(M * N), dx(M * K), dw(N * K);
  for (auto* v : {&x, &dy, &latent}) {
    for (float& f : *v) f = normal(random);
  }
  for (float& f : latent) f *= 0.02f;
  Bytes blocks(N * K / 128 * 34);
  tt_quantize(ctx, N, K, latent.data(), blocks.data());
  for (std::size_t b = 0; b < N * K / 128; ++b) {
    for (int j = 0; j < 128; ++j) {
      w[b * 128 + static_cast<std::size_t>(j)] =
          static_cast<float>((code_of(&blocks[b * 34], j) - 1) * scale_of(&blocks[b * 34]));
    }
  }
  if (tt_linear(ctx, M, N, K, x.data(), blocks.data(), dy.data(), y.data(), dx.data(), dw.data()) !=
      ASSAY_OK)
    return false;
  const auto near = [](double got, double want) {
    return std::abs(got - want) < 1e-4 + 1e-4 * std::abs(want);
  };
  for (std::size_t m = 0; m < M; ++m) {
    for (std::size_t n = 0; n < N; ++n) {
      double sum = 0;
      for (std::size_t k = 0; k < K; ++k) sum += static_cast<double>(x[m * K + k]) * w[n * K + k];
      if (!near(y[m * N + n], sum)) return false;
    }
    for (std::size_t k = 0; k < K; ++k) {
      double sum = 0;
      for (std::size_t n = 0; n < N; ++n) sum += static_cast<double>(dy[m * N + n]) * w[n * K + k];
      if (!near(dx[m * K + k], sum)) return false;
    }
  }
  for (std::size_t n = 0; n < N; ++n) {
    for (std::size_t k = 0; k < K; ++k) {
      double sum = 0;
      for (std::size_t m = 0; m < M; ++m) sum += static_cast<double>(dy[m * N + n]) * x[m * K + k];
      if (!near(dw[n * K + k], sum)) return false;
    }
  }
  return true;
}

// --- the model, written out
// ---------------------------------------------------------------------------

struct Reader {
  const std::uint8_t *matrix, *norm;

  Vector weights(std::size_t n) {
    Vector w;
    for (std::size_t b = 0; b < n / 128; ++b, matrix += 34) {
      for (int j = 0; j < 128; ++j) w.push_back((code_of(matrix, j) - 1) * scale_of(matrix));
    }
    return w;
  }
  Vector norms(std::size_t n) {
    Vector w;
    for (std::size_t i = 0; i < n; ++i, norm += 4) {
      float f;
      std::memcpy(&f, norm, 4);
      w.push_back(f);
    }
    return w;
  }
};

Vector rms(const double* x, const Vector& w, double eps) {
  double square = 0;
  for (std::size_t i = 0; i < w.size(); ++i) square += x[i] * x[i] / static_cast<double>(w.size());
  Vector y;
  for (std::size_t i = 0; i < w.size(); ++i) y.push_back(x[i] / std::sqrt(square + eps) * w[i]);
  return y;
}

Vector times(const Vector& w, const Vector& x) {
  Vector y(w.size() / x.size());
  for (std::size_t r = 0; r < y.size(); ++r) {
    for (std::size_t i = 0; i < x.size(); ++i) y[r] += w[r * x.size() + i] * x[i];
  }
  return y;
}

Vector turned(const Vector& x, std::size_t position, double theta) {
  Vector y(x.size());
  const std::size_t half = x.size() / 2;
  for (std::size_t i = 0; i < half; ++i) {
    const double angle = static_cast<double>(position) *
                         std::pow(theta, -static_cast<double>(i) / static_cast<double>(half));
    y[i] = x[i] * std::cos(angle) - x[i + half] * std::sin(angle);
    y[i + half] = x[i] * std::sin(angle) + x[i + half] * std::cos(angle);
  }
  return y;
}

std::vector<Vector> logits_of(const tt_config& c, const Bytes& blob,
                              const std::vector<std::uint16_t>& tokens) {
  const auto d = static_cast<std::size_t>(c.d), V = static_cast<std::size_t>(c.V),
             hd = static_cast<std::size_t>(c.hd);
  const auto Hq = static_cast<std::size_t>(c.Hq), Hkv = static_cast<std::size_t>(c.Hkv),
             ff = static_cast<std::size_t>(c.ff);
  Reader in{blob.data(),
            blob.data() + blob.size() - 4 * (static_cast<std::size_t>(c.L) * (2 * d + 2 * hd) + d)};
  const Vector embedding = in.weights(V * d);
  std::vector<Vector> x;
  for (const auto t : tokens) x.emplace_back(&embedding[t * d], &embedding[t * d] + d);
  for (int l = 0; l < c.L; ++l) {
    const Vector q = in.weights(Hq * hd * d), k = in.weights(Hkv * hd * d),
                 v = in.weights(Hkv * hd * d), o = in.weights(d * Hq * hd);
    const Vector gate = in.weights(ff * d), up = in.weights(ff * d), down = in.weights(d * ff);
    const Vector attention_norm = in.norms(d), query_norm = in.norms(hd), key_norm = in.norms(hd),
                 ff_norm = in.norms(d);
    std::vector<Vector> keys, values;
    for (std::size_t t = 0; t < x.size(); ++t) {
      const Vector h = rms(x[t].data(), attention_norm, c.eps), queries = times(q, h);
      keys.push_back(times(k, h));
      values.push_back(times(v, h));
      Vector a(Hq * hd);
      for (std::size_t j = 0; j < Hq; ++j) {
        const std::size_t g = j / (Hq / Hkv) * hd;
        const Vector query = turned(rms(&queries[j * hd], query_norm, c.eps), t, c.theta);
        double total = 0;
        Vector p;
        for (std::size_t u = 0; u <= t; ++u) {
          const Vector key = turned(rms(&keys[u][g], key_norm, c.eps), u, c.theta);
          double score = 0;
          for (std::size_t i = 0; i < hd; ++i) score += query[i] * key[i];
          total += (p.push_back(std::exp(score / std::sqrt(static_cast<double>(hd)))), p.back());
        }
        for (std::size_t u = 0; u <= t; ++u) {
          for (std::size_t i = 0; i < hd; ++i) a[j * hd + i] += p[u] / total * values[u][g + i];
        }
      }
      const Vector back = times(o, a);
      for (std::size_t i = 0; i < d; ++i) x[t][i] += back[i];
    }
    for (Vector& row : x) {
      const Vector h = rms(row.data(), ff_norm, c.eps), g = times(gate, h), u = times(up, h);
      Vector s(ff);
      for (std::size_t i = 0; i < ff; ++i) s[i] = g[i] / (1 + std::exp(-g[i])) * u[i];
      const Vector back = times(down, s);
      for (std::size_t i = 0; i < d; ++i) row[i] += back[i];
    }
  }
  const Vector final_norm = in.norms(d);
  std::vector<Vector> y;
  for (const Vector& row : x) y.push_back(times(embedding, rms(row.data(), final_norm, c.eps)));
  return y;
}

bool logits_are_right(assay_ctx* ctx) {
  const tt_config c{sizeof(tt_config), 20, 128, 1, 8, 2, 16, 128, 12, 1, 900.0f, 1e-6f};
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  Bytes blob(tt_blob_bytes(&c));
  constexpr std::size_t kNorms = 3 * 128 + 2 * 16;
  const std::size_t matrices = blob.size() - 4 * kNorms;
  std::vector<float> w(128);
  for (std::size_t at = 0; at < matrices; at += 34) {
    for (float& f : w) f = 0.1f * normal(random);
    if (tt_quantize(ctx, 1, 128, w.data(), &blob[at]) != ASSAY_OK) return false;
  }
  for (std::size_t i = 0; i < kNorms; ++i) {
    const float f = 0.5f + std::abs(normal(random));
    std::memcpy(&blob[matrices + 4 * i], &f, 4);
  }
  std::vector<std::uint16_t> tokens(12);
  for (auto& t : tokens) t = static_cast<std::uint16_t>(random() % 20);
  std::vector<float> got(12 * 20);
  if (tt_logits(ctx, &c, blob.data(), tokens.data(), 1, got.data()) != ASSAY_OK) return false;
  const auto want = logits_of(c, blob, tokens);
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (!(std::abs(got[i] - want[i / 20][i % 20]) < 1e-3)) return false;
  }
  return true;
}

// Every token is a function of the one two places before. A quarter of the loss of guessing is
// easy.
bool learns(assay_ctx* ctx) {
  const tt_config c{sizeof(tt_config), 32, 128, 1, 4, 2, 32, 128, 32, 1, 1e4f, 1e-6f};
  constexpr std::size_t kDocs = 1024, kT = 32;
  std::mt19937 random(6);
  std::vector<std::uint16_t> docs((kDocs + 8) * kT);
  for (std::size_t i = 0; i < docs.size(); ++i) {
    docs[i] = static_cast<std::uint16_t>(i % kT < 2 ? random() % 32 : (docs[i - 2] * 5u + 7) % 32);
  }
  Bytes blob(tt_blob_bytes(&c), 0xff);
  const tt_budget budget{sizeof(tt_budget), 30, static_cast<std::int64_t>(kDocs * kT), 1};
  if (tt_train(ctx, &c, docs.data(), kDocs, &budget, blob.data()) != ASSAY_OK) return false;
  const std::size_t matrices = blob.size() - 4 * (3 * 128 + 2 * 32);
  for (std::size_t at = 0; at < matrices; at += 34) {
    if (blob[at + 1] >= 0x7c) return false;
  }
  double loss = 0;
  for (std::size_t doc = kDocs; doc < kDocs + 8; ++doc) {
    const std::vector<std::uint16_t> tokens(
        docs.begin() + static_cast<std::ptrdiff_t>(doc * kT),
        docs.begin() + static_cast<std::ptrdiff_t>((doc + 1) * kT));
    const auto y = logits_of(c, blob, tokens);
    for (std::size_t t = 1; t + 1 < kT; ++t) {
      double total = 0;
      for (const double v : y[t]) total += std::exp(v);
      loss += (std::log(total) - y[t][tokens[t + 1]]) / (8 * (kT - 2));
    }
  }
  return loss < 0.8;
}

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  return refuses(ctx) && blocks_are_right(ctx) && linear_is_right(ctx) && logits_are_right(ctx) &&
                 learns(ctx)
             ? 0
             : 1;
}
