// The model, its gradients and its generated text, against a forward pass written here.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <set>
#include <utility>

#include "challenges/ternary_training_case.h"

namespace plain {
#define tt_blob_bytes plain_blob_bytes
#define tt_train plain_train
#define tt_quantize plain_quantize
#define tt_dequantize plain_dequantize
#define tt_linear plain_linear
#define tt_logits plain_logits
#define tt_pack_dense plain_pack_dense
#define tt_unpack_dense plain_unpack_dense
#define tt_linear_bf16 plain_linear_bf16
#define tt_generate plain_generate
#define tt_train_part plain_train_part
#define tt_blob_statistics plain_blob_statistics
#define tt_distill_loss plain_distill_loss
#include "naive.cpp"  // NOLINT(bugprone-suspicious-include): the plain answer, under other names
#undef tt_blob_bytes
#undef tt_train
#undef tt_quantize
#undef tt_dequantize
#undef tt_linear
#undef tt_logits
#undef tt_pack_dense
#undef tt_unpack_dense
#undef tt_linear_bf16
#undef tt_generate
#undef tt_train_part
#undef tt_blob_statistics
#undef tt_distill_loss
}  // namespace plain

namespace assay::ternary_training {
namespace {

// The forward pass on an array of all weights in the blob's order, one number at a time.
class Witness {
 public:
  Witness(const tt_config& c, const Vector& weights) : c_(c), w_(weights) {}

  double loss(const std::vector<std::uint16_t>& tokens) {
    const auto y = logits(tokens);
    double total = 0;
    for (std::size_t t = 0; t + 1 < tokens.size(); ++t) {
      double sum = 0;
      for (const double v : y[t]) sum += std::exp(v);
      total += std::log(sum) - y[t][tokens[t + 1]];
    }
    return total / static_cast<double>(tokens.size() - 1);
  }

  std::vector<Vector> logits(const std::vector<std::uint16_t>& tokens) {
    read_ = 0;
    const std::size_t d = u(c_.d), V = u(c_.V);
    const std::size_t embedding = take(V * d), head = c_.tied ? embedding : take(V * d);
    std::vector<Vector> x;
    for (const auto t : tokens) x.emplace_back(&w_[embedding + t * d], &w_[embedding + t * d] + d);
    const std::size_t per_layer =
        d * (2 * u(c_.Hq) * u(c_.hd) + 2 * u(c_.Hkv) * u(c_.hd) + 3 * u(c_.ff));
    std::size_t norm = read_ + u(c_.L) * per_layer;
    for (int l = 0; l < c_.L; ++l) {
      layer(x, norm);
      norm += 2 * d + 2 * u(c_.hd);
    }
    std::vector<Vector> out;
    for (const Vector& row : x) out.push_back(times(head, V, rms(row, norm)));
    return out;
  }

 private:
  static std::size_t u(int n) { return static_cast<std::size_t>(n); }
  std::size_t take(std::size_t n) { return std::exchange(read_, read_ + n); }

  Vector rms(const Vector& x, std::size_t norm) const {
    double square = 0;
    for (const double v : x) square += v * v / static_cast<double>(x.size());
    Vector y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      y[i] = x[i] / std::sqrt(square + c_.eps) * w_[norm + i];
    return y;
  }

  Vector times(std::size_t at, std::size_t rows, const Vector& x) const {
    Vector y(rows);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t i = 0; i < x.size(); ++i) y[r] += w_[at + r * x.size() + i] * x[i];
    }
    return y;
  }

  // One head of a position, normed and turned.
  Vector head(const Vector& all, std::size_t j, std::size_t norm, std::size_t position) const {
    const std::size_t hd = u(c_.hd);
    const Vector x = rms({all.begin() + static_cast<std::ptrdiff_t>(j * hd),
                          all.begin() + static_cast<std::ptrdiff_t>((j + 1) * hd)},
                         norm);
    Vector y(hd);
    for (std::size_t i = 0; i < hd / 2; ++i) {
      const double angle = static_cast<double>(position) /
                           std::pow(static_cast<double>(c_.theta),
                                    2.0 * static_cast<double>(i) / static_cast<double>(hd));
      y[i] = std::cos(angle) * x[i] - std::sin(angle) * x[i + hd / 2];
      y[i + hd / 2] = std::sin(angle) * x[i] + std::cos(angle) * x[i + hd / 2];
    }
    return y;
  }

  void layer(std::vector<Vector>& x, std::size_t norm) {
    const std::size_t d = u(c_.d), hd = u(c_.hd), ff = u(c_.ff), Hq = u(c_.Hq), Hkv = u(c_.Hkv);
    const std::size_t q = take(Hq * hd * d), k = take(Hkv * hd * d), v = take(Hkv * hd * d),
                      o = take(d * Hq * hd);
    const std::size_t gate = take(ff * d), up = take(ff * d), down = take(d * ff);
    std::vector<Vector> qs, ks, vs;
    for (const Vector& row : x) {
      const Vector h = rms(row, norm);
      qs.push_back(times(q, Hq * hd, h));
      ks.push_back(times(k, Hkv * hd, h));
      vs.push_back(times(v, Hkv * hd, h));
    }
    for (std::size_t t = 0; t < x.size(); ++t) {
      Vector a(Hq * hd);
      for (std::size_t j = 0; j < Hq; ++j) {
        const std::size_t kv = j / (Hq / Hkv);
        const Vector query = head(qs[t], j, norm + d, t);
        Vector p;
        double sum = 0;
        for (std::size_t s = 0; s <= t; ++s) {
          const Vector key = head(ks[s], kv, norm + d + hd, s);
          double score = 0;
          for (std::size_t i = 0; i < hd; ++i) score += query[i] * key[i];
          p.push_back(std::exp(score / std::sqrt(static_cast<double>(hd))));
          sum += p.back();
        }
        for (std::size_t s = 0; s <= t; ++s) {
          for (std::size_t i = 0; i < hd; ++i) a[j * hd + i] += p[s] / sum * vs[s][kv * hd + i];
        }
      }
      const Vector back = times(o, d, a);
      for (std::size_t i = 0; i < d; ++i) x[t][i] += back[i];
    }
    for (Vector& row : x) {
      const Vector h = rms(row, norm + d + 2 * hd), g = times(gate, ff, h), w = times(up, ff, h);
      Vector s(ff);
      for (std::size_t i = 0; i < ff; ++i) s[i] = g[i] / (1 + std::exp(-g[i])) * w[i];
      const Vector back = times(down, d, s);
      for (std::size_t i = 0; i < d; ++i) row[i] += back[i];
    }
  }

  tt_config c_;
  const Vector& w_;
  std::size_t read_ = 0;
};

void* allocate(assay_ctx*, std::size_t bytes, std::size_t align, int) {
  return std::aligned_alloc(align, (bytes + align - 1) / align * align);
}
void release(assay_ctx*, void* p) { std::free(p); }

// d is one block wide, the rest is as small as possible; two layers, grouped heads.
tt_config small_config(int tied) {
  return {sizeof(tt_config), 11, 128, 2, 8, 4, 16, 128, 6, tied, 50.0f, 1e-6f};
}

TEST(TernaryGradients, AgreeWithCentralDifferences) {
  for (const int tied : {1, 0}) {
    const tt_config c = small_config(tied);
    assay_ctx ctx{1, -1, nullptr, 1, &allocate, &release, nullptr};
    const plain::Layout layout(c);
    const auto n = static_cast<std::size_t>(layout.size);
    Random random(7);
    std::vector<float> weights(n), gradient(n);
    for (std::size_t i = 0; i < n; ++i) {
      weights[i] = static_cast<float>(i < static_cast<std::size_t>(layout.matrices)
                                          ? 0.2 * random.normal()
                                          : random.uniform(0.5, 1.5));
    }
    const std::vector<std::uint16_t> tokens{3, 10, 3, 0, 7, 3};
    plain::Pass pass(&ctx, layout);
    const double loss = pass.train(weights.data(), tokens.data(), gradient.data());
    Vector wide(weights.begin(), weights.end());
    Witness witness(c, wide);
    EXPECT_NEAR(loss, witness.loss(tokens), 1e-5);
    // Some weights of every matrix and of every norm.
    for (std::size_t i = 5; i < n; i += i < static_cast<std::size_t>(layout.matrices) ? 9973 : 37) {
      const double old = wide[i], h = 1e-4;
      wide[i] = old + h;
      const double up = witness.loss(tokens);
      wide[i] = old - h;
      const double down = witness.loss(tokens);
      wide[i] = old;
      EXPECT_NEAR(gradient[i], (up - down) / (2 * h), 2e-5 + 1e-3 * std::abs(gradient[i]))
          << "weight " << i << " of " << n;
    }
  }
}

TEST(TernaryModel, AgreesWithTheWitness) {
  for (const char* name : {"logits", "gqa_tile", "logits_odd", "logits_untied", "norm_of_384",
                           "norm_of_another_epsilon"}) {
    const CaseSpec& c = subject().case_named(name);
    const tt_config config = shape_of(c).call.config;
    Drawn drawn(c, 21);
    const Vector w = decode_all(config, drawn.buffer(logits::kBlob).span<std::uint8_t>());
    const auto* docs = drawn.buffer(logits::kDocs).as<std::uint16_t>();
    const auto y = Witness(config, w).logits({docs, docs + config.T});
    const auto& expected = drawn.reference().logits;
    for (std::size_t t = 0; t < y.size(); ++t) {
      for (std::size_t v = 0; v < y[t].size(); ++v) {
        ASSERT_NEAR(expected[t * y[t].size() + v], y[t][v], 1e-9) << name << " " << t << " " << v;
      }
    }
  }
}

// The witness's greedy continuation, computed from whole documents, passes. No other token passes,
// except an equally good one. The documents do not repeat one single token.
TEST(TernaryGeneration, AcceptsTheWitnessAlone) {
  using namespace generation;
  const CaseSpec& c = subject().case_named("generate_on");
  const Shape s = shape_of(c);
  const tt_config& config = s.call.config;
  Drawn drawn(c, 12);
  const Vector w = decode_all(config, drawn.buffer(kBlob).span<std::uint8_t>());
  std::set<std::uint16_t> different;
  for (std::size_t doc = 0; doc < static_cast<std::size_t>(s.call.n_docs); ++doc) {
    std::vector<std::uint16_t> tokens;
    for (const auto& [given, generated] :
         {std::pair{kTokens, kGenerated}, {kMoreTokens, kMoreGenerated}}) {
      const auto in = drawn.buffer(given).span<std::uint16_t>(),
                 out = drawn.buffer(generated).span<std::uint16_t>();
      const std::size_t n = in.size() / 2, steps = out.size() / 2;
      tokens.insert(tokens.end(), in.begin() + static_cast<std::ptrdiff_t>(doc * n),
                    in.begin() + static_cast<std::ptrdiff_t>(doc * n + n));
      for (std::size_t i = 0; i < steps; ++i) {
        const Vector y = Witness(config, w).logits(tokens).back();
        const auto best = std::max_element(y.begin(), y.end()) - y.begin();
        tokens.push_back(out[doc * steps + i] = static_cast<std::uint16_t>(best));
        different.insert(tokens.back());
      }
    }
  }
  EXPECT_GE(different.size(), 8u);
  const auto check = [&] { return drawn.check(); };
  const CheckResult good = check();
  EXPECT_TRUE(good.pass) << good.detail;
  for (const int part : {kGenerated, kMoreGenerated}) {
    for (auto& token : drawn.buffer(part).span<std::uint16_t>()) {
      const std::uint16_t right = token;
      token = static_cast<std::uint16_t>((right + 1) % config.V);
      EXPECT_FALSE(check().pass);
      token = 0xffff;
      EXPECT_FALSE(check().pass);
      token = right;
    }
  }
}

// One differing bit is too much, and equal blobs of an untrained model are not enough.
TEST(TernaryTrainPart, AsksForTheSameBytesAndForAModel) {
  const CaseSpec& c = subject().case_named("resumed");
  Drawn drawn(c, 1);
  const Shape s = shape_of(c);
  assay_ctx ctx{1, -1, nullptr, 1, &allocate, &release, nullptr};
  const auto blob = drawn.buffer(train::kBlob).span<std::uint8_t>(),
             whole = drawn.buffer(train_part::kWhole).span<std::uint8_t>();
  ASSERT_EQ(blob.size(), whole.size());
  ASSERT_GT(drawn.buffer(train_part::kState).bytes, 4 * 4 * (blob.size() / 34) * 128 / 2);
  ASSERT_EQ(plain::plain_train(&ctx, &s.call.config, drawn.buffer(train::kDocs).as<std::uint16_t>(),
                               s.call.n_docs, &s.call.budget, blob.data()),
            ASSAY_OK);
  const auto check = [&] { return drawn.check(); };
  std::copy(blob.begin(), blob.end(), whole.begin());
  EXPECT_TRUE(check().pass) << check().detail;
  for (const std::size_t at : {std::size_t{0}, blob.size() / 2, blob.size() - 1}) {
    whole[at] ^= 1;
    EXPECT_FALSE(check().pass) << at;
    whole[at] ^= 1;
  }
  tt_budget none = s.call.budget;
  none.max_tokens = 1;
  ASSERT_EQ(plain::plain_train(&ctx, &s.call.config, drawn.buffer(train::kDocs).as<std::uint16_t>(),
                               s.call.n_docs, &none, blob.data()),
            ASSAY_OK);
  std::copy(blob.begin(), blob.end(), whole.begin());
  EXPECT_FALSE(check().pass);
}

}  // namespace
}  // namespace assay::ternary_training
