// The model and its gradients against a forward pass written here, the block format against a
// decoder written from its description, the corpus's floor against a predictor that reads only the
// prefix, the baselines, the examples, and outputs that must be rejected.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "run/challenge_registry.h"
#include "run/layout.h"
#include "support/direct_runner.h"
#include "trusted.h"
#include "util/files.h"

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
#include "naive.cpp"
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

namespace fs = std::filesystem;
using Vector = std::vector<double>;

const std::string kName = "ternary_training";

const Challenge& challenge() {
  for (const auto& row : challenge_rows()) {
    if (row.name == kName) return row.get();
  }
  throw Error("not registered");
}

const ChallengeSpec& spec() {
  static const ChallengeSpec loaded = testing::spec_of(kName);
  return loaded;
}

const CaseSpec& case_named(const std::string& name) {
  const auto found = std::find_if(spec().cases.begin(), spec().cases.end(),
                                  [&](const CaseSpec& c) { return c.name == name; });
  if (found == spec().cases.end()) throw Error("no case " + name);
  return *found;
}

std::string file(const std::string& name) { return spec().directory + "/" + name; }

// A case drawn from a seed, with room for outputs.
struct Drawn {
  Drawn(const CaseSpec& c, std::uint64_t seed)
      : plan(challenge().plan(c)),
        layout(run::make_layout(plan, false)),
        input(layout.input_bytes + 64),
        output(layout.output_bytes + 64),
        buffers(run::views(layout, input.data(), output.data())) {
    challenge().fill(c, plan, seed, buffers);
    reference = challenge().reference(c, plan, buffers);
  }
  CasePlan plan;
  run::Layout layout;
  std::vector<std::byte> input, output;
  std::vector<BufferView> buffers;
  std::unique_ptr<Reference> reference;
};

// --- a second model
// ----------------------------------------------------------------------------------

// The forward pass over an array of all weights in the blob's order, one number at a time.
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

// d is one block wide, the rest as small as can be; two layers, grouped heads.
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
    // Some of every matrix and of every norm.
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

// Bits as the description counts them: code j is bits 2j and 2j + 1 of the 256 after the scale.
Vector decode(const std::uint8_t* block) {
  const int exponent = block[1] >> 2 & 31, fraction = (block[1] & 3) * 256 + block[0];
  const double s = exponent == 0 ? fraction * std::pow(2.0, -24)
                                 : (1 + fraction / 1024.0) * std::pow(2.0, exponent - 15);
  Vector w;
  for (int bit = 0; bit < 256; bit += 2) {
    const int low = block[2 + bit / 8] >> bit % 8 & 1,
              high = block[2 + bit / 8] >> (bit % 8 + 1) & 1;
    w.push_back((low + 2 * high - 1) * s);
  }
  return w;
}

// All weights of a blob in its order.
Vector decode_all(const tt_config& config, std::span<const std::uint8_t> blob) {
  const auto norms = static_cast<std::size_t>(config.L * (2 * config.d + 2 * config.hd) + config.d);
  Vector w;
  for (std::size_t at = 0; at < blob.size() - 4 * norms; at += 34) {
    for (const double v : decode(blob.data() + at)) w.push_back(v);
  }
  for (std::size_t i = 0; i < norms; ++i) {
    float v;
    std::memcpy(&v, blob.data() + blob.size() - 4 * (norms - i), 4);
    w.push_back(v);
  }
  return w;
}

TEST(TernaryModel, AgreesWithTheWitness) {
  for (const char* name : {"logits", "gqa_tile", "logits_odd", "logits_untied"}) {
    const CaseSpec& c = case_named(name);
    const tt_config config = shape_of(c).call.config;
    Drawn drawn(c, 21);
    const Vector w = decode_all(config, drawn.buffers[logits::kBlob].span<std::uint8_t>());
    const auto* docs = drawn.buffers[logits::kDocs].as<std::uint16_t>();
    const auto y = Witness(config, w).logits({docs, docs + config.T});
    const auto& expected = static_cast<const TernReference&>(*drawn.reference).logits;
    for (std::size_t t = 0; t < y.size(); ++t) {
      for (std::size_t v = 0; v < y[t].size(); ++v) {
        ASSERT_NEAR(expected[t * y[t].size() + v], y[t][v], 1e-9) << name << " " << t << " " << v;
      }
    }
  }
}

TEST(TernaryBlocks, ScalesRoundToTheNearestHalfPrecisionNumber) {
  for (unsigned bits = 0; bits < 0x7bff; ++bits) {
    const double a = half_value(static_cast<std::uint16_t>(bits)),
                 b = half_value(static_cast<std::uint16_t>(bits + 1));
    const double middle = (a + b) / 2;  // the tie goes to the even one
    EXPECT_EQ(half_bits(a), bits);
    EXPECT_EQ(half_bits(middle), bits + bits % 2);
    EXPECT_EQ(half_bits(std::nextafter(middle, 0)), bits);
    EXPECT_EQ(half_bits(std::nextafter(middle, 1e9)), bits + 1);
  }
  EXPECT_EQ(half_bits(1e300), 0x7bff);
}

TEST(TernaryBlocks, IllegalOnesAreRefused) {
  std::uint8_t block[34] = {0, 0x3c};
  double w[128];
  EXPECT_TRUE(decode_block(block, w));
  for (const auto& [byte, value] :
       std::map<int, int>{{5, 0x0c}, {1, 0xbc}, {1, 0x7c}, {1, 0x7e}, {33, 0xc0}}) {
    std::uint8_t bad[34];
    std::copy_n(block, 34, bad);
    bad[byte] = static_cast<std::uint8_t>(value);
    EXPECT_FALSE(decode_block(bad, w)) << byte;
  }
}

// --- optional functions
// ----------------------------------------------------------------------------------------

// Weight j's code in a dense block, from where the format says that it stands: digit n of a byte is
// what floor(3 u) is when u, the byte as a fraction of 256, has been tripled n times modulo 1.
int dense_code(const std::uint8_t* block, int j) {
  int byte, digit;
  if (j < 80) {
    byte = j % 16, digit = j / 16;
  } else if (j < 120) {
    byte = 16 + j % 8, digit = (j - 80) / 8;
  } else {
    byte = 24 + j % 2, digit = (j - 120) / 2;
  }
  double u = block[byte] / 256.0;
  for (int i = 0; i < digit; ++i) u = u * 3 - std::floor(u * 3);
  return static_cast<int>(std::floor(u * 3));
}

TEST(TernaryDense, HoldsTheCodesWhereTheFormatHasThem) {
  for (const char* name : {"pack_dense", "dense_random"}) {
    Drawn drawn(case_named(name), 4);
    const auto blocks = drawn.buffers[dense::kFrom].span<std::uint8_t>();
    const auto& packed = static_cast<const TernReference&>(*drawn.reference).bytes;
    ASSERT_EQ(packed.size() * 34, blocks.size() * 28);
    std::set<int> values;
    for (std::size_t b = 0; b < blocks.size() / 34; ++b) {
      const std::uint8_t *block = &blocks[b * 34], *dense = &packed[b * 28];
      EXPECT_EQ(dense[26], block[0]);
      EXPECT_EQ(dense[27], block[1]);
      for (int j = 0; j < 128; ++j) {
        ASSERT_EQ(dense_code(dense, j), block[2 + j / 4] >> (j % 4 * 2) & 3) << b << " " << j;
      }
      for (int m : {24, 25}) {  // the fifth digit
        const double u = dense[m] * 81 / 256.0;
        EXPECT_EQ(std::floor(3 * (u - std::floor(u))), 0);
      }
      values.insert(dense, dense + 24);
      std::uint8_t back[34];
      undense_block(dense, back);
      EXPECT_TRUE(std::equal(back, back + 34, block));
    }
    EXPECT_EQ(values.size(), 243u) << name;
  }
}

// Bytes by hand: all zeros of weights are 11111 in base 3, 121, and 256 * 121 / 243 = 127.5; the
// last bytes have 11110, 120: 126.4. All positive: 242, 254.9; 240, 252.8.
TEST(TernaryDense, KnownBytes) {
  for (const auto& [code, byte, last] : {std::tuple{0, 0, 0}, {1, 128, 127}, {2, 255, 253}}) {
    std::uint8_t block[34] = {0x34, 0x12}, dense[28];
    std::fill(block + 2, block + 34, static_cast<std::uint8_t>(code * 0x55));
    dense_block(block, dense);
    for (int i = 0; i < 26; ++i) EXPECT_EQ(dense[i], i < 24 ? byte : last) << code << " " << i;
    EXPECT_EQ(dense[26], 0x34);
    EXPECT_EQ(dense[27], 0x12);
  }
}

double from_bf16(std::uint16_t bits) {
  const double magnitude =
      (bits >> 7 & 255) == 0 ? 0 : std::ldexp(128 + (bits & 127), (bits >> 7 & 255) - 134);
  return bits >> 15 ? -magnitude : magnitude;
}

TEST(TernaryBf16, ReferenceIsTheSumOfTheRoundedInputs) {
  const CaseSpec& c = case_named("linear_bf16_odd");
  Drawn drawn(c, 8);
  const Shape s = shape_of(c);
  const auto& r = static_cast<const TernReference&>(*drawn.reference);
  const auto *x = drawn.buffers[linear::kX].as<std::uint16_t>(),
             *dy = drawn.buffers[linear::kDy].as<std::uint16_t>();
  Vector w;
  const auto blocks = drawn.buffers[linear::kBlocks].span<std::uint8_t>();
  for (std::size_t at = 0; at < blocks.size(); at += 34) {
    for (const double v : decode(&blocks[at])) w.push_back(v);
  }
  const auto M = static_cast<std::size_t>(s.call.M), N = static_cast<std::size_t>(s.call.rows),
             K = static_cast<std::size_t>(s.call.cols);
  const auto check = [&](const std::vector<Row>& rows, std::size_t row, std::size_t column,
                         double expected) {
    EXPECT_NEAR(rows[row].expected[column], expected, 1e-12 * (1 + std::abs(expected)));
    return rows[row].plain[column];
  };
  for (std::size_t m = 0; m < M; ++m) {
    for (std::size_t n = 0; n < N; n += 13) {
      double y = 0;
      for (std::size_t k = 0; k < K; ++k) y += from_bf16(x[m * K + k]) * w[n * K + k];
      const double plain = check(r.y, m, n, y);
      // Rounded to 8 bits.
      EXPECT_NEAR(plain, y, 0x1p-8 * std::abs(y));
      EXPECT_EQ(std::fmod(plain, std::ldexp(1, std::ilogb(plain) - 7)), 0);
    }
    for (std::size_t k = 0; k < K; k += 29) {
      double dx = 0;
      for (std::size_t n = 0; n < N; ++n) dx += from_bf16(dy[m * N + n]) * w[n * K + k];
      check(r.dx, m, k, dx);
    }
  }
  for (std::size_t n = 0; n < N; n += 17) {
    for (std::size_t k = 0; k < K; k += 31) {
      double dw = 0;
      for (std::size_t m = 0; m < M; ++m) dw += from_bf16(dy[m * N + n]) * from_bf16(x[m * K + k]);
      check(r.dw, n, k, dw);
    }
  }
}

// The greedy continuation by the witness, which sees whole documents, passes; so does no other
// token, but for one that is as good; and the documents are no single token over and over.
TEST(TernaryGeneration, AcceptsTheWitnessAlone) {
  using namespace generation;
  const CaseSpec& c = case_named("generate_on");
  const Shape s = shape_of(c);
  const tt_config& config = s.call.config;
  Drawn drawn(c, 12);
  const Vector w = decode_all(config, drawn.buffers[kBlob].span<std::uint8_t>());
  std::set<std::uint16_t> different;
  for (std::size_t doc = 0; doc < static_cast<std::size_t>(s.call.n_docs); ++doc) {
    std::vector<std::uint16_t> tokens;
    for (const auto& [given, generated] :
         {std::pair{kTokens, kGenerated}, {kMoreTokens, kMoreGenerated}}) {
      const auto in = drawn.buffers[static_cast<std::size_t>(given)].span<std::uint16_t>(),
                 out = drawn.buffers[static_cast<std::size_t>(generated)].span<std::uint16_t>();
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
  const auto check = [&] {
    return challenge().check(c, drawn.plan, *drawn.reference, drawn.buffers, nullptr);
  };
  const CheckResult good = check();
  EXPECT_TRUE(good.pass) << good.detail;
  for (const int part : {kGenerated, kMoreGenerated}) {
    for (auto& token : drawn.buffers[static_cast<std::size_t>(part)].span<std::uint16_t>()) {
      const std::uint16_t right = token;
      token = static_cast<std::uint16_t>((right + 1) % config.V);
      EXPECT_FALSE(check().pass);
      token = 0xffff;
      EXPECT_FALSE(check().pass);
      token = right;
    }
  }
}

TEST(TernaryGeneration, HidesTheSecondPrompt) {
  const CasePlan plan = challenge().plan(case_named("generate_on"));
  EXPECT_EQ(plan.phases, 2);
  EXPECT_EQ(plan.buffers[generation::kMoreTokens].phase, 1);
}

// Counted over an array of all weights, column by column and row by row.
TEST(TernaryStatistics, AgreeWithADirectCount) {
  for (const char* name : {"counts", "counts_alone"}) {
    const CaseSpec& c = case_named(name);
    const tt_config config = shape_of(c).call.config;
    Drawn drawn(c, 17);
    const auto blob = drawn.buffers[statistics::kBlob].span<std::uint8_t>(),
               earlier = drawn.buffers[statistics::kBefore].span<std::uint8_t>();
    const Vector now = decode_all(config, blob),
                 before = earlier.empty() ? now : decode_all(config, earlier);
    const int heads = config.Hq * config.hd, kv = config.Hkv * config.hd;
    std::vector<std::pair<int, int>> sizes{{config.V, config.d}};
    if (config.tied == 0) sizes.push_back(sizes[0]);
    for (int l = 0; l < config.L; ++l) {
      for (const auto& size : std::vector<std::pair<int, int>>{{heads, config.d},
                                                               {kv, config.d},
                                                               {kv, config.d},
                                                               {config.d, heads},
                                                               {config.ff, config.d},
                                                               {config.ff, config.d},
                                                               {config.d, config.ff}}) {
        sizes.push_back(size);
      }
    }
    const auto& counts = static_cast<const TernReference&>(*drawn.reference).counts;
    ASSERT_EQ(counts.size(), 7 * sizes.size()) << name;
    std::size_t from = 0, dead = 0, zero_scales = 0;
    for (std::size_t m = 0; m < sizes.size(); ++m) {
      const auto rows = static_cast<std::size_t>(sizes[m].first),
                 cols = static_cast<std::size_t>(sizes[m].second);
      std::array<std::int64_t, 7> n{};
      for (std::size_t i = from; i < from + rows * cols; ++i) {
        n[0] += now[i]<0, n[1] += now[i] == 0, n[2] += now[i]> 0;
        n[6] += now[i] * before[i] < 0;
        n[5] += now[i] * before[i] < 0 || (now[i] == 0) != (before[i] == 0);
      }
      for (std::size_t r = 0; r < rows; ++r) {
        bool zero = true;
        for (std::size_t k = 0; k < cols; ++k) zero = zero && now[from + r * cols + k] == 0;
        n[3] += zero;
      }
      for (std::size_t k = 0; k < cols; ++k) {
        bool zero = true;
        for (std::size_t r = 0; r < rows; ++r) zero = zero && now[from + r * cols + k] == 0;
        n[4] += zero;
      }
      for (std::size_t i = 0; i < 7; ++i) EXPECT_EQ(counts[m * 7 + i], n[i]) << m << " " << i;
      EXPECT_EQ(n[5] > 0, !earlier.empty());
      dead += static_cast<std::size_t>(n[3] > 0 && n[4] > 0);
      from += rows * cols;
    }
    EXPECT_EQ(dead, sizes.size());
    for (std::size_t i = 0; i < from / 128; ++i)
      zero_scales += blob[i * 34] == 0 && blob[i * 34 + 1] == 0;
    EXPECT_GT(zero_scales, 20u);
  }
}

// Another form of the loss, temperature^2 (log Z_s - log Z_t) + temperature sum p (t - s), and
// central differences of it.
TEST(TernaryDistillation, IsTheDivergenceAndItsGradient) {
  const CaseSpec& c = case_named("distill");
  const Shape s = shape_of(c);
  Drawn drawn(c, 6);
  const auto& r = static_cast<const TernReference&>(*drawn.reference);
  const auto V = static_cast<std::size_t>(s.call.cols);
  const double tau = static_cast<double>(s.call.temperature);
  for (std::size_t m = 0; m < static_cast<std::size_t>(s.call.M); m += 5) {
    const float *t = drawn.buffers[distill::kTeacher].as<float>() + m * V,
                *z = drawn.buffers[distill::kStudent].as<float>() + m * V;
    Vector student(z, z + V);
    const auto loss = [&] {
      double zt = 0, zs = 0, cross = 0;
      for (std::size_t v = 0; v < V; ++v) {
        const double weight = std::exp(static_cast<double>(t[v]) / tau);
        zt += weight;
        zs += std::exp(student[v] / tau);
        cross += weight * (static_cast<double>(t[v]) - student[v]);
      }
      return tau * tau * (std::log(zs) - std::log(zt)) + tau * cross / zt;
    };
    EXPECT_NEAR(r.loss[m].expected[0], loss(), 1e-10);
    for (std::size_t v = 0; v < V; v += 37) {
      const double old = student[v], h = 1e-4;
      student[v] = old + h;
      const double up = loss();
      student[v] = old - h;
      const double down = loss();
      student[v] = old;
      EXPECT_NEAR(r.gradient[m].expected[v], (up - down) / (2 * h), 1e-8);
    }
  }
}

// One bit of difference is too much, and equal blobs of an untrained model are not enough.
TEST(TernaryTrainPart, AsksForTheSameBytesAndForAModel) {
  const CaseSpec& c = case_named("resumed");
  Drawn drawn(c, 1);
  const Shape s = shape_of(c);
  assay_ctx ctx{1, -1, nullptr, 1, &allocate, &release, nullptr};
  const auto blob = drawn.buffers[train::kBlob].span<std::uint8_t>(),
             whole = drawn.buffers[train_part::kWhole].span<std::uint8_t>();
  ASSERT_EQ(blob.size(), whole.size());
  ASSERT_GT(drawn.buffers[train_part::kState].bytes, 4 * 4 * (blob.size() / 34) * 128 / 2);
  ASSERT_EQ(
      plain::plain_train(&ctx, &s.call.config, drawn.buffers[train::kDocs].as<std::uint16_t>(),
                         s.call.n_docs, &s.call.budget, blob.data()),
      ASSAY_OK);
  const auto check = [&] {
    return challenge().check(c, drawn.plan, *drawn.reference, drawn.buffers, nullptr);
  };
  std::copy(blob.begin(), blob.end(), whole.begin());
  EXPECT_TRUE(check().pass) << check().detail;
  for (const std::size_t at : {std::size_t{0}, blob.size() / 2, blob.size() - 1}) {
    whole[at] ^= 1;
    EXPECT_FALSE(check().pass) << at;
    whole[at] ^= 1;
  }
  tt_budget none = s.call.budget;
  none.max_tokens = 1;
  ASSERT_EQ(
      plain::plain_train(&ctx, &s.call.config, drawn.buffers[train::kDocs].as<std::uint16_t>(),
                         s.call.n_docs, &none, blob.data()),
      ASSAY_OK);
  std::copy(blob.begin(), blob.end(), whole.begin());
  EXPECT_FALSE(check().pass);
}

// --- the corpus
// --------------------------------------------------------------------------------------

// Counts what follows what in the state that the visible prefix shows (a mark, the place in a
// block, the open brackets, the class of the last word) over many documents. If the costs that the
// generator logs are those of the true distribution, the predictor of counts comes to the same
// mean, kind by kind.
TEST(TernaryCorpus, FloorIsTheEntropyGivenThePrefix) {
  const nlohmann::json corpus = {{"classes", 3}, {"words", 4},    {"names", 5},
                                 {"defined", 2}, {"brackets", 2}, {"depth", 2}};
  tt_config c{};
  c.V = 32;
  const auto language = make_language(corpus, c, 5);
  constexpr int kOpen = 3, kClose = 5, kWord0 = 7, kName0 = 19;
  std::map<std::string, std::map<int, double>> next;
  struct Seen {
    std::string state;
    int token, kind;
    double cost;
  };
  std::vector<Seen> seen;
  Random random(9);
  std::vector<std::uint16_t> tokens(64);
  std::vector<float> cost(64);
  std::vector<std::uint8_t> kind(64);
  for (int doc = 0; doc < 30000; ++doc) {
    language->write(random, {tokens, cost.data(), kind.data()});
    std::string stack, pending, defined;
    int last_class = 0, in_definition = 0;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const int token = tokens[t];
      std::string state = t == 0 ? "start"
                                 : "free " + std::to_string(last_class) + " " + stack +
                                       (defined.empty() ? "" : " d");
      if (in_definition > 0) state = "define " + defined;
      if (!pending.empty()) state = "repeat " + pending;
      next[state][token] += 1;
      seen.push_back({state, token, kind[t], cost[t]});
      if (in_definition > 0) {
        defined += static_cast<char>(token + 64);
        --in_definition;
      } else if (!pending.empty()) {
        EXPECT_EQ(token + 64, pending[0]);
        pending.erase(0, 1);
      } else if (token == 1) {
        defined.clear();
        in_definition = 2;
      } else if (token == 2) {
        pending = defined;
      } else if (token >= kOpen && token < kClose) {
        stack += static_cast<char>('a' + token - kOpen);
      } else if (token >= kClose && token < kWord0) {
        ASSERT_EQ(stack.back(), 'a' + token - kClose);
        stack.pop_back();
      } else if (token >= kWord0) {
        ASSERT_LT(token, kName0);
        last_class = (token - kWord0) / 4;
      }
    }
  }
  std::map<std::string, double> total;
  for (const auto& [state, counts] : next) {
    for (const auto& [token, n] : counts) total[state] += n;
  }
  std::array<double, kKinds> logged{}, counted{}, n{};
  for (const Seen& s : seen) {
    const auto k = static_cast<std::size_t>(s.kind);
    logged[k] += s.cost;
    counted[k] -= std::log(next[s.state][s.token] / total[s.state]);
    n[k] += 1;
  }
  for (std::size_t k = 0; k < kKinds; ++k) {
    EXPECT_NEAR(logged[k] / n[k], counted[k] / n[k], 0.01) << kKindNames[k];
  }
  EXPECT_EQ(logged[kCopy], 0);
}

TEST(TernaryGenerator, DependsOnTheSeedAlone) {
  for (const char* name : {"quantize", "train", "logits", "linear", "pack_dense", "linear_bf16",
                           "generate_on", "counts"}) {
    const CaseSpec& c = case_named(name);
    const Drawn a(c, 5), b(c, 5), other(c, 6);
    for (std::size_t i = 0; i < a.buffers.size(); ++i) {
      if (a.plan.buffers[i].role != Role::input || a.buffers[i].bytes == 0) continue;
      EXPECT_EQ(std::memcmp(a.buffers[i].data, b.buffers[i].data, a.buffers[i].bytes), 0) << name;
      EXPECT_NE(std::memcmp(a.buffers[i].data, other.buffers[i].data, a.buffers[i].bytes), 0)
          << name;
    }
  }
}

// Plain blocks are the same by a mean in fp32 that was never rounded to binary16: only traps, which
// say so, fail an answer for that.
TEST(TernaryGenerator, PlainBlocksDoNotDependOnRounding) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    for (const char* name : {"quantize", "one_row", "group_rows"}) {
      const Drawn drawn(case_named(name), seed);
      const std::span<const float> weights = drawn.buffers[quantize::kW].span<const float>();
      std::vector<std::uint8_t> blocks;
      for (std::size_t at = 0; at < weights.size(); at += 128) {
        float mean = 0;
        for (const float v : weights.subspan(at, 128)) mean += std::abs(v) / 128;
        const std::uint16_t bits = half_bits(mean);
        blocks.push_back(static_cast<std::uint8_t>(bits));
        blocks.push_back(static_cast<std::uint8_t>(bits >> 8));
        for (std::size_t j = 0; j < 128; ++j) {
          const float v = weights[at + j];
          const int code = std::abs(v) <= mean / 2 ? 1 : v < 0 ? 0 : 2;
          if (j % 4 == 0) blocks.push_back(0);
          blocks.back() = static_cast<std::uint8_t>(blocks.back() | code << (j % 4 * 2));
        }
      }
      EXPECT_EQ(static_cast<const TernReference&>(*drawn.reference).bytes, blocks)
          << name << " from seed " << seed;
    }
  }
}

// What the worker must never see.
TEST(TernaryGenerator, HidesTheHeldOutDocuments) {
  const CasePlan plan = challenge().plan(case_named("train"));
  for (const int hidden : {train::kHeldOut, train::kCost, train::kKind, train::kForeign}) {
    EXPECT_GE(plan.buffers[static_cast<std::size_t>(hidden)].phase, plan.phases);
  }
}

TEST(TernaryChecker, RejectsUntouchedZeroAndNanOutputs) {
  for (const char* name :
       {"quantize", "dequantize", "linear", "logits", "train", "blob_norms", "pack_dense",
        "unpack_dense", "linear_bf16", "generate", "resumed", "counts", "distill"}) {
    const CaseSpec& c = case_named(name);
    Drawn drawn(c, 3);
    const auto passes = [&] {
      return challenge().check(c, drawn.plan, *drawn.reference, drawn.buffers, nullptr).pass;
    };
    run::poison(drawn.plan, drawn.layout, drawn.output.data(), 9);
    EXPECT_FALSE(passes()) << name;
    std::fill(drawn.output.begin(), drawn.output.end(), std::byte{0xff});
    EXPECT_FALSE(passes()) << name;
    if (std::string(name) == "blob_norms") continue;  // zeros are a legal model
    std::fill(drawn.output.begin(), drawn.output.end(), std::byte{0});
    EXPECT_FALSE(passes()) << name;
  }
}

// --- shipped code
// --------------------------------------------------------------------------------------

class TernaryBaseline : public ::testing::TestWithParam<const char*> {};

// Long ones run alone in a graded run.
TEST_P(TernaryBaseline, PassesEveryUntimedCase) {
  testing::DirectRunner runner(kName, testing::compile(file(GetParam()), kName));
  for (const CaseSpec& c : spec().cases) {
    if (c.group == CaseGroup::timed || c.exclusive) continue;
    const bool cheap = shape_of(c).entry != kTrain;
    for (std::uint64_t seed = 1; seed <= (cheap ? 3 : 1); ++seed) {
      const CaseResult result = runner.run(c, seed);
      EXPECT_EQ(result.verdict, Verdict::ok) << c.name << " seed " << seed << ": " << result.detail;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, TernaryBaseline, ::testing::Values("naive.cpp", "par.cpp"));

}  // namespace
}  // namespace assay::ternary_training
