// The entrant's own tests: blocks against the format's description, the linear layer against sums
// in double. Returns 0 if the implementation linked with it is accepted.
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "abi.h"

namespace {

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

}  // namespace

extern "C" int assay_self_test(assay_ctx* ctx) {
  return refuses(ctx) && blocks_are_right(ctx) && linear_is_right(ctx) ? 0 : 1;
}
