// The block format, the model in fp64 and what the unit entries must return.
#include <Eigen/Dense>
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <numeric>

#include "assay/parallel.h"
#include "real_text.h"
#include "trusted.h"

namespace assay::ternary_training {
namespace {

template <class Scalar>
using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class Scalar>
using Vector = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;

// Reads a blob front to back.
template <class Scalar>
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  Matrix<Scalar> matrix(std::int64_t rows, std::int64_t cols) {
    Matrix<Scalar> m(rows, cols);
    double w[kBlockWeights];
    for (std::int64_t b = 0; b < rows * cols / kBlockWeights; ++b, at_ += kBlockBytes) {
      legal_ = decode_block(bytes_.data() + at_, w) && legal_;
      for (int j = 0; j < kBlockWeights; ++j)
        m.data()[b * kBlockWeights + j] = static_cast<Scalar>(w[j]);
    }
    return m;
  }

  Vector<Scalar> norm(std::int64_t n) {
    Vector<Scalar> v(n);
    for (std::int64_t i = 0; i < n; ++i, at_ += 4) {
      float f;
      std::memcpy(&f, bytes_.data() + at_, 4);
      finite_ = finite_ && std::isfinite(f);
      v[i] = static_cast<Scalar>(f);
    }
    return v;
  }

  const char* complaint() const {
    if (!legal_) return "the blob holds code 3 or a scale that is negative or not finite";
    return finite_ ? "" : "the blob holds a norm that is not finite";
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool legal_ = true, finite_ = true;
};

template <class Scalar>
class Transformer final : public Model {
  using M = Matrix<Scalar>;
  using V = Vector<Scalar>;

 public:
  Transformer(const tt_config& c, Reader<Scalar>& in)
      : c_(c), layers_(static_cast<std::size_t>(c.L)) {
    embedding_ = in.matrix(c.V, c.d);
    if (!c.tied) head_ = in.matrix(c.V, c.d);
    for (Layer& l : layers_) {
      l.q = in.matrix(c.Hq * c.hd, c.d);
      l.k = in.matrix(c.Hkv * c.hd, c.d);
      l.v = in.matrix(c.Hkv * c.hd, c.d);
      l.o = in.matrix(c.d, c.Hq * c.hd);
      l.gate = in.matrix(c.ff, c.d);
      l.up = in.matrix(c.ff, c.d);
      l.down = in.matrix(c.d, c.ff);
    }
    for (Layer& l : layers_) {
      l.attention_norm = in.norm(c.d);
      l.query_norm = in.norm(c.hd);
      l.key_norm = in.norm(c.hd);
      l.ff_norm = in.norm(c.d);
    }
    final_norm_ = in.norm(c.d);
  }

  void logits(const std::uint16_t* tokens, double* out) const override {
    M x(c_.T, c_.d);
    for (std::int64_t t = 0; t < c_.T; ++t)
      x.row(t) = embedding_.row(std::min<int>(tokens[t], c_.V - 1));
    for (const Layer& l : layers_) {
      x += attention(l, rms(x, l.attention_norm)) * l.o.transpose();
      const M h = rms(x, l.ff_norm), g = h * l.gate.transpose(), u = h * l.up.transpose();
      const M s = (g.array() / (1 + (-g.array()).exp()) * u.array()).matrix();
      x += s * l.down.transpose();
    }
    const M y = rms(x, final_norm_) * (c_.tied ? embedding_ : head_).transpose();
    Eigen::Map<Matrix<double>>(out, c_.T, c_.V) = y.template cast<double>();
  }

 private:
  struct Layer {
    M q, k, v, o, gate, up, down;
    V attention_norm, query_norm, key_norm, ff_norm;
  };

  M rms(const M& x, const V& w) const {
    const auto n = static_cast<Scalar>(x.cols());
    const V scale = ((x.rowwise().squaredNorm() / n).array() + static_cast<Scalar>(c_.eps)).rsqrt();
    return scale.asDiagonal() * x * w.asDiagonal();
  }

  // Norm and rotation of one head's columns.
  M turned(const M& all, std::int64_t head, const V& norm) const {
    M x = rms(all.middleCols(head * c_.hd, c_.hd), norm);
    const std::int64_t half = c_.hd / 2;
    for (std::int64_t t = 0; t < c_.T; ++t) {
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle =
            static_cast<double>(t) *
            std::pow(static_cast<double>(c_.theta), -2.0 * static_cast<double>(i) / c_.hd);
        const auto cos = static_cast<Scalar>(std::cos(angle)),
                   sin = static_cast<Scalar>(std::sin(angle));
        const Scalar a = x(t, i), b = x(t, i + half);
        x(t, i) = a * cos - b * sin;
        x(t, i + half) = a * sin + b * cos;
      }
    }
    return x;
  }

  M attention(const Layer& l, const M& h) const {
    const M q = h * l.q.transpose(), k = h * l.k.transpose(), v = h * l.v.transpose();
    M out(c_.T, c_.Hq * c_.hd);
    const std::int64_t group = c_.Hq / c_.Hkv;
    M key;
    for (std::int64_t j = 0; j < c_.Hq; ++j) {
      if (j % group == 0) key = turned(k, j / group, l.key_norm);
      M p = turned(q, j, l.query_norm) * key.transpose() / std::sqrt(static_cast<Scalar>(c_.hd));
      for (std::int64_t t = 0; t < c_.T; ++t) {
        auto seen = p.row(t).head(t + 1).array();
        seen = (seen - seen.maxCoeff()).exp();
        seen /= seen.sum();
        p.row(t).tail(c_.T - t - 1).setZero();
      }
      out.middleCols(j * c_.hd, c_.hd) = p * v.middleCols(j / group * c_.hd, c_.hd);
    }
    return out;
  }

  tt_config c_;
  M embedding_, head_;
  std::vector<Layer> layers_;
  V final_norm_;
};

// --- tt_linear
// -----------------------------------------------------------------------------------------

// A row of sums of a[k] B[k, j] over k: exact, as plain fp32 has it (blocks of 64), and of absolute
// terms.
class RowSum {
 public:
  explicit RowSum(std::int64_t n)
      : row_{0,
             std::vector<double>(static_cast<std::size_t>(n)),
             {},
             std::vector<double>(static_cast<std::size_t>(n))},
        block_(static_cast<std::size_t>(n)),
        total_(block_) {}

  void add(float a, const float* b, std::int64_t stride) {
    for (std::size_t j = 0; j < block_.size(); ++j) {
      const float v = b[static_cast<std::int64_t>(j) * stride];
      const double term = static_cast<double>(a) * v;
      row_.expected[j] += term;
      row_.scale[j] += std::abs(term);
      block_[j] += a * v;
    }
    if (++terms_ % 64 == 0) flush();
  }

  Row take(std::int64_t index) {
    flush();
    row_.index = index;
    row_.plain.assign(total_.begin(), total_.end());
    return std::move(row_);
  }

 private:
  void flush() {
    for (std::size_t j = 0; j < block_.size(); ++j) {
      total_[j] += block_[j];
      block_[j] = 0;
    }
  }
  Row row_;
  std::vector<float> block_, total_;
  std::int64_t terms_ = 0;
};

// All rows, or for a large result so many, spread by a hash of the input.
std::vector<std::int64_t> judged_rows(std::int64_t n, std::int64_t most, std::uint64_t seed) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(n));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  if (n <= most) return rows;
  Random random(seed);
  for (std::int64_t i = 0; i < most; ++i) {
    std::swap(rows[static_cast<std::size_t>(i)],
              rows[static_cast<std::size_t>(i + random.below(n - i))]);
  }
  rows.resize(static_cast<std::size_t>(most));
  return rows;
}

template <class MakeRow>
std::vector<Row> rows_of(std::int64_t n, std::int64_t most, std::uint64_t seed, MakeRow make) {
  const auto wanted = judged_rows(n, most, seed);
  std::vector<Row> rows(wanted.size());
  parallel_for(static_cast<std::int64_t>(rows.size()), 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   rows[static_cast<std::size_t>(i)] = make(wanted[static_cast<std::size_t>(i)]);
                 }
               });
  return rows;
}

std::vector<float> widened(const BufferView& bf16) {
  std::vector<float> out;
  for (const std::uint16_t bits : bf16.span<std::uint16_t>()) out.push_back(bf16_to_float(bits));
  return out;
}

void reference_linear(const CaseSpec& spec, const Shape& s, BufferViews buffers, TernReference& r) {
  using namespace linear;
  const std::int64_t M = s.call.M, N = s.call.rows, K = s.call.cols;
  const bool bf16 = s.entry == kLinearBf16;
  const std::vector<float> wide_x = bf16 ? widened(buffers[kX]) : std::vector<float>(),
                           wide_dy = bf16 ? widened(buffers[kDy]) : std::vector<float>();
  const float *x = bf16 ? wide_x.data() : buffers[kX].as<float>(),
              *dy = bf16 ? wide_dy.data() : buffers[kDy].as<float>();
  std::vector<float> w(static_cast<std::size_t>(N * K)), wt(w.size());
  for (std::int64_t b = 0; b < N * K / kBlockWeights; ++b) {
    double values[kBlockWeights];
    decode_block(buffers[kBlocks].as<std::uint8_t>() + b * kBlockBytes, values);
    for (std::int64_t j = 0; j < kBlockWeights; ++j) {
      const std::int64_t at = b * kBlockWeights + j;
      const auto v = static_cast<float>(values[j]);
      w[static_cast<std::size_t>(at)] = v;
      wt[static_cast<std::size_t>(at % K * N + at / K)] = v;
    }
  }
  const std::int64_t most = spec.params.value("judged_rows", std::int64_t{1} << 40);
  std::uint64_t seed = M * N * K > 0 ? std::bit_cast<std::uint32_t>(x[0]) : 0;
  r.y = rows_of(M, most, mix64(++seed), [&](std::int64_t m) {
    RowSum sum(N);
    for (std::int64_t k = 0; k < K; ++k) sum.add(x[m * K + k], wt.data() + k * N, 1);
    return sum.take(m);
  });
  r.dx = rows_of(M, most, mix64(++seed), [&](std::int64_t m) {
    RowSum sum(K);
    for (std::int64_t n = 0; n < N; ++n) sum.add(dy[m * N + n], w.data() + n * K, 1);
    return sum.take(m);
  });
  r.dw = rows_of(N, most, mix64(++seed), [&](std::int64_t n) {
    RowSum sum(K);
    for (std::int64_t m = 0; m < M; ++m) sum.add(dy[m * N + n], x + m * K, 1);
    return sum.take(n);
  });
  // What a plain implementation would store.
  for (auto* rows : {&r.y, &r.dx}) {
    for (Row& row : *rows) {
      for (double& v : row.plain)
        v = bf16 ? static_cast<double>(bf16_to_float(float_to_bf16(static_cast<float>(v)))) : v;
    }
  }
}

// --- tt_train
// ------------------------------------------------------------------------------------------

// What a pair of neighbours says, counted in the training documents: the yardstick that training
// must beat.
class Bigram {
 public:
  Bigram(std::span<const std::uint16_t> docs, std::int64_t V, std::int64_t T)
      : V_(static_cast<std::size_t>(V)), pair_(V_ * V_), first_(V_), single_(V_, 1.0) {
    for (std::size_t i = 0; i < docs.size(); ++i) {
      if (i % static_cast<std::size_t>(T) == 0) continue;
      pair_[docs[i - 1] * V_ + docs[i]] += 1;
      first_[docs[i - 1]] += 1;
      single_[docs[i]] += 1;
    }
    total_ = std::accumulate(single_.begin(), single_.end(), 0.0);
  }
  double cost(std::size_t before, std::size_t token) const {
    constexpr double kBackoff = 5;
    return -std::log((pair_[before * V_ + token] + kBackoff * single_[token] / total_) /
                     (first_[before] + kBackoff));
  }

 private:
  std::size_t V_;
  std::vector<double> pair_, first_, single_;
  double total_ = 0;
};

void reference_train(const Shape& s, BufferViews buffers, TernReference& r) {
  using namespace train;
  const auto T = static_cast<std::size_t>(s.call.config.T);
  const auto held_out = buffers[kHeldOut].span<std::uint16_t>();
  if (held_out.empty()) return;
  const Bigram bigram(buffers[kDocs].span<std::uint16_t>(), s.call.config.V, s.call.config.T);
  for (std::size_t i = 0; i < held_out.size(); ++i) {
    if (i % T == 0) continue;
    const std::uint8_t kind = buffers[kKind].as<std::uint8_t>()[i];
    r.count[kind] += 1;
    r.floor[kind] += static_cast<double>(buffers[kCost].as<float>()[i]);
    r.bigram[kind] += bigram.cost(held_out[i - 1], held_out[i]);
  }
  for (std::size_t k = 0; k < kKinds; ++k) {
    r.floor[k] /= std::max(r.count[k], 1.0);
    r.bigram[k] /= std::max(r.count[k], 1.0);
  }
}

template <class Scalar>
std::vector<double> all_logits(const Shape& s, BufferViews buffers) {
  const tt_config& c = s.call.config;
  Reader<Scalar> reader(buffers[logits::kBlob].span<std::uint8_t>());
  const Transformer<Scalar> model(c, reader);
  const std::int64_t per_doc = std::int64_t{c.T} * c.V;
  std::vector<double> out(static_cast<std::size_t>(s.call.n_docs * per_doc));
  for (std::int64_t i = 0; i < s.call.n_docs; ++i) {
    model.logits(buffers[logits::kDocs].as<std::uint16_t>() + i * c.T, out.data() + i * per_doc);
  }
  return out;
}

// --- tt_distill_loss
// ------------------------------------------------------------------------------------------

template <class Scalar>
struct Distilled {
  std::vector<Scalar> p, q;
  Scalar loss = 0, terms = 0;  // the sum, and that of its absolute terms
};

template <class Scalar>
Distilled<Scalar> distilled(std::span<const float> teacher, std::span<const float> student,
                            float temperature) {
  const auto tau = static_cast<Scalar>(temperature);
  const auto log_softmax = [&](std::span<const float> z) {
    const Scalar most = static_cast<Scalar>(*std::max_element(z.begin(), z.end()));
    Scalar sum = 0;
    for (const float v : z) sum += std::exp((static_cast<Scalar>(v) - most) / tau);
    std::vector<Scalar> out;
    for (const float v : z) out.push_back((static_cast<Scalar>(v) - most) / tau - std::log(sum));
    return out;
  };
  Distilled<Scalar> d{log_softmax(teacher), log_softmax(student)};
  for (std::size_t v = 0; v < teacher.size(); ++v) {
    const Scalar log_p = d.p[v], log_q = d.q[v];
    d.p[v] = std::exp(log_p);
    d.q[v] = std::exp(log_q);
    d.loss += tau * tau * d.p[v] * (log_p - log_q);
    d.terms += tau * tau * d.p[v] * (std::abs(log_p) + std::abs(log_q));
  }
  return d;
}

void reference_distill(const Shape& s, BufferViews buffers, TernReference& r) {
  using namespace distill;
  const auto V = static_cast<std::size_t>(s.call.cols);
  const double tau = static_cast<double>(s.call.temperature);
  for (std::int64_t m = 0; m < s.call.M; ++m) {
    const std::size_t at = static_cast<std::size_t>(m) * V;
    const std::span<const float> teacher = buffers[kTeacher].span<float>().subspan(at, V),
                                 student = buffers[kStudent].span<float>().subspan(at, V);
    const auto exact = distilled<double>(teacher, student, s.call.temperature);
    const auto plain = distilled<float>(teacher, student, s.call.temperature);
    r.loss.push_back({m, {exact.loss}, {static_cast<double>(plain.loss)}, {exact.terms}});
    Row row{m, {}, {}, {}};
    for (std::size_t v = 0; v < V; ++v) {
      row.expected.push_back(tau * (exact.q[v] - exact.p[v]));
      row.plain.push_back(static_cast<double>(s.call.temperature * (plain.q[v] - plain.p[v])));
      // Where both underflow in fp32, it is their absolute size that counts.
      row.scale.push_back(tau * (exact.q[v] + exact.p[v] + 0x1p-100));
    }
    r.gradient.push_back(std::move(row));
  }
}

// --- tt_blob_statistics
// ------------------------------------------------------------------------------------------

int sign(double v) { return v > 0 ? 1 : v < 0 ? -1 : 0; }

void reference_statistics(const Shape& s, BufferViews buffers, TernReference& r) {
  using namespace statistics;
  const std::uint8_t* blob = buffers[kBlob].as<std::uint8_t>();
  const std::uint8_t* before =
      buffers[kBefore].bytes > 0 ? buffers[kBefore].as<std::uint8_t>() : blob;
  for (const MatrixSize& m : matrices_of(s.call.config)) {
    std::array<std::int64_t, kCountsPerMatrix> counts{};
    auto& [minus, zero, plus, dead_rows, dead_columns, changed, reversed] = counts;
    std::vector<char> used(static_cast<std::size_t>(m.cols));
    for (std::int64_t row = 0; row < m.rows; ++row) {
      bool alive = false;
      for (std::int64_t at = 0; at < m.cols;
           at += kBlockWeights, blob += kBlockBytes, before += kBlockBytes) {
        double now[kBlockWeights], then[kBlockWeights];
        decode_block(blob, now);
        decode_block(before, then);
        for (std::int64_t j = 0; j < kBlockWeights; ++j) {
          const int a = sign(now[j]), b = sign(then[j]);
          ++(a < 0 ? minus : a > 0 ? plus : zero);
          changed += a != b;
          reversed += a * b < 0;
          if (a == 0) continue;
          alive = true;
          used[static_cast<std::size_t>(at + j)] = 1;
        }
      }
      dead_rows += !alive;
    }
    dead_columns = std::count(used.begin(), used.end(), 0);
    r.counts.insert(r.counts.end(), counts.begin(), counts.end());
  }
}

}  // namespace

std::vector<MatrixSize> matrices_of(const tt_config& c) {
  if (blob_size(c) == 0) return {};
  const std::int64_t d = c.d, wide = std::int64_t{c.Hq} * c.hd, narrow = std::int64_t{c.Hkv} * c.hd,
                     ff = c.ff;
  std::vector<MatrixSize> all(static_cast<std::size_t>(2 - c.tied), {c.V, d});
  for (int l = 0; l < c.L; ++l) {
    all.insert(all.end(),
               {{wide, d}, {narrow, d}, {narrow, d}, {d, wide}, {ff, d}, {ff, d}, {d, ff}});
  }
  return all;
}

std::int64_t weight_count(const tt_config& c) {
  std::int64_t n = c.L * (2 * std::int64_t{c.d} + 2 * std::int64_t{c.hd}) + c.d;
  for (const MatrixSize& m : matrices_of(c)) n += m.rows * m.cols;
  return n;
}

std::int64_t block_bytes(std::int64_t rows, std::int64_t cols) {
  return rows * ((cols + kBlockWeights - 1) / kBlockWeights) * kBlockBytes;
}

std::int64_t blob_size(const tt_config& c) {
  const bool positive =
      c.V > 0 && c.d > 0 && c.L > 0 && c.Hq > 0 && c.Hkv > 0 && c.hd > 0 && c.ff > 0;
  if (!positive || c.T < 2 || c.V > 65536 || c.hd % 2 != 0 || c.Hq % c.Hkv != 0) return 0;
  const std::int64_t d = c.d, wide = std::int64_t{c.Hq} * c.hd, narrow = std::int64_t{c.Hkv} * c.hd,
                     ff = c.ff;
  if (d % kBlockWeights != 0 || wide % kBlockWeights != 0 || ff % kBlockWeights != 0) return 0;
  if (c.tied != 0 && c.tied != 1) return 0;
  const std::int64_t layer = block_bytes(wide, d) + 2 * block_bytes(narrow, d) +
                             block_bytes(d, wide) + 2 * block_bytes(ff, d) + block_bytes(d, ff);
  const std::int64_t norms = c.L * (2 * d + 2 * std::int64_t{c.hd}) + d;
  return (2 - c.tied) * block_bytes(c.V, d) + c.L * layer + 4 * norms;
}

double half_value(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

// For what a scale can be: not negative, at most 65504.
std::uint16_t half_bits(double v) {
  if (!(v > 0)) return 0;
  v = std::min(v, 65504.0);
  const int exponent = std::max(std::ilogb(v), -14);  // below 2^-14 the spacing stays 2^-24
  // nearbyint rounds ties to even; a carry into the next power of two is right in this encoding
  // too.
  const auto units = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(v, 10 - exponent)));
  return static_cast<std::uint16_t>(units + static_cast<std::uint32_t>((exponent + 14) << 10));
}

void quantize_block(const float* w, std::uint8_t* block) {
  double sum = 0;
  for (int j = 0; j < kBlockWeights; ++j) sum += std::abs(static_cast<double>(w[j]));
  const std::uint16_t bits = half_bits(sum / kBlockWeights);
  const double s = half_value(bits);
  std::fill_n(block, kBlockBytes, std::uint8_t{0});
  block[0] = static_cast<std::uint8_t>(bits);
  block[1] = static_cast<std::uint8_t>(bits >> 8);
  for (int j = 0; j < kBlockWeights; ++j) {
    const bool large = s > 0 && std::abs(static_cast<double>(w[j])) > s / 2;
    const int code = !large ? 1 : w[j] > 0 ? 2 : 0;
    block[2 + j / 4] = static_cast<std::uint8_t>(block[2 + j / 4] | code << (j % 4 * 2));
  }
}

bool decode_block(const std::uint8_t* block, double* w) {
  const double s = half_value(static_cast<std::uint16_t>(block[0] | block[1] << 8));
  bool legal = std::isfinite(s) && s >= 0 && block[1] < 0x80;
  for (int j = 0; j < kBlockWeights; ++j) {
    const int code = block[2 + j / 4] >> (j % 4 * 2) & 3;
    legal = legal && code != 3;
    w[j] = (code - 1) * s;
  }
  return legal;
}

void dense_block(const std::uint8_t* block, std::uint8_t* dense) {
  const auto code = [&](int j) { return block[2 + j / 4] >> (j % 4 * 2) & 3; };
  // Byte by byte: the first weight, how far apart its weights are, how many they are.
  const auto put = [&](int at, int first, int stride, int n) {
    int number = 0;
    for (int i = 0; i < 5; ++i) number = 3 * number + (i < n ? code(first + i * stride) : 0);
    dense[at] = static_cast<std::uint8_t>((256 * number + 242) / 243);
  };
  for (int m = 0; m < 16; ++m) put(m, m, 16, 5);
  for (int m = 0; m < 8; ++m) put(16 + m, 80 + m, 8, 5);
  for (int m = 0; m < 2; ++m) put(24 + m, 120 + m, 2, 4);
  dense[26] = block[0];
  dense[27] = block[1];
}

// The inverse by search: a byte has no more than one number.
void undense_block(const std::uint8_t* dense, std::uint8_t* block) {
  std::fill_n(block, kBlockBytes, std::uint8_t{0});
  block[0] = dense[26];
  block[1] = dense[27];
  const auto take = [&](int at, int first, int stride, int n) {
    int number = 0;
    while (number < 242 && (256 * number + 242) / 243 != dense[at]) ++number;
    for (int i = 4; i >= 0; --i, number /= 3) {
      const int j = first + i * stride;
      if (i < n)
        block[2 + j / 4] = static_cast<std::uint8_t>(block[2 + j / 4] | number % 3 << (j % 4 * 2));
    }
  };
  for (int m = 0; m < 16; ++m) take(m, m, 16, 5);
  for (int m = 0; m < 8; ++m) take(16 + m, 80 + m, 8, 5);
  for (int m = 0; m < 2; ++m) take(24 + m, 120 + m, 2, 4);
}

std::unique_ptr<Model> decode_blob(const tt_config& c, std::span<const std::uint8_t> blob,
                                   std::string& why_not) {
  if (static_cast<std::int64_t>(blob.size()) != blob_size(c)) {
    why_not = "the blob has the wrong size";
    return nullptr;
  }
  Reader<double> reader(blob);
  auto model = std::make_unique<Transformer<double>>(c, reader);
  why_not = reader.complaint();
  if (!why_not.empty()) return nullptr;
  return model;
}

std::vector<double> token_costs(const Model& model, const tt_config& c,
                                std::span<const std::uint16_t> docs) {
  std::vector<double> cost(docs.size());
  const std::int64_t T = c.T, V = c.V;
  parallel_for(static_cast<std::int64_t>(docs.size()) / T, 1,
               [&](std::int64_t begin, std::int64_t end) {
                 std::vector<double> logits(static_cast<std::size_t>(T * V));
                 for (std::int64_t doc = begin; doc < end; ++doc) {
                   const std::uint16_t* tokens = docs.data() + doc * T;
                   model.logits(tokens, logits.data());
                   for (std::int64_t t = 0; t + 1 < T; ++t) {
                     const Eigen::Map<const Eigen::ArrayXd> row(logits.data() + t * V, V);
                     const double most = row.maxCoeff();
                     cost[static_cast<std::size_t>(doc * T + t + 1)] =
                         most + std::log((row - most).exp().sum()) - row[tokens[t + 1]];
                   }
                 }
               });
  return cost;
}

std::unique_ptr<Reference> make_reference(const CaseSpec& spec, BufferViews buffers) {
  const Shape s = shape_of(spec);
  auto r = std::make_unique<TernReference>();
  switch (s.entry) {
    case kQuantize: {
      const auto w = buffers[quantize::kW].span<float>();
      r->bytes.resize(w.size() / kBlockWeights * kBlockBytes);
      for (std::size_t b = 0; b < w.size() / kBlockWeights; ++b) {
        quantize_block(w.data() + b * kBlockWeights, r->bytes.data() + b * kBlockBytes);
      }
      break;
    }
    case kDequantize: {
      const auto blocks = buffers[dequantize::kBlocks].span<std::uint8_t>();
      for (std::size_t at = 0; at < blocks.size(); at += kBlockBytes) {
        double w[kBlockWeights];
        decode_block(blocks.data() + at, w);
        r->weights.insert(r->weights.end(), w, w + kBlockWeights);
      }
      break;
    }
    case kPackDense:
    case kUnpackDense: {
      const auto from = buffers[dense::kFrom].span<std::uint8_t>();
      const bool packing = s.entry == kPackDense;
      const std::size_t in = packing ? kBlockBytes : kDenseBytes,
                        out = packing ? kDenseBytes : kBlockBytes;
      r->bytes.resize(from.size() / in * out);
      for (std::size_t b = 0; b < from.size() / in; ++b) {
        (packing ? dense_block : undense_block)(from.data() + b * in, r->bytes.data() + b * out);
      }
      break;
    }
    case kLinear:
    case kLinearBf16: reference_linear(spec, s, buffers, *r); break;
    case kBlobBytes:
    case kGenerate: break;
    case kDistill: reference_distill(s, buffers, *r); break;
    case kStatistics: reference_statistics(s, buffers, *r); break;
    case kTrain:
    case kTrainPart:
      if (text_file(spec).empty()) reference_train(s, buffers, *r);
      break;
    case kLogits:
      r->logits = all_logits<double>(s, buffers);
      r->logits32 = all_logits<float>(s, buffers);
      break;
  }
  return r;
}

}  // namespace assay::ternary_training
