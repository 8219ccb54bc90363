// The required results of the entries.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "assay/parallel.h"
#include "assay/size.h"
#include "real_text.h"
#include "trusted.h"

namespace assay::ternary_training {
namespace {

// --- tt_linear

// A row of sums of a[k] B[k, j] over k: exact, in plain fp32 (blocks of 64), and of absolute terms.
class RowSum {
 public:
  explicit RowSum(std::int64_t n)
      : row_{0, std::vector<double>(to_size(n)), {}, std::vector<double>(to_size(n))},
        block_(to_size(n)),
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

// All rows, or, for a large result, `most` rows chosen by the seed.
std::vector<std::int64_t> judged_rows(std::int64_t n, std::int64_t most, std::uint64_t seed) {
  std::vector<std::int64_t> rows(to_size(n));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  if (n <= most) return rows;
  Random random(seed);
  for (std::int64_t i = 0; i < most; ++i) {
    std::swap(rows[to_size(i)], rows[to_size(i + random.below(n - i))]);
  }
  rows.resize(to_size(most));
  return rows;
}

template <class MakeRow>
std::vector<Row> rows_of(std::int64_t n, std::int64_t most, std::uint64_t seed, MakeRow make) {
  const auto wanted = judged_rows(n, most, seed);
  std::vector<Row> rows(wanted.size());
  parallel_for(static_cast<std::int64_t>(rows.size()), 1,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   rows[to_size(i)] = make(wanted[to_size(i)]);
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
  std::vector<float> w(to_size(N * K)), wt(w.size());
  for (std::int64_t b = 0; b < N * K / kBlockWeights; ++b) {
    double values[kBlockWeights];
    decode_block(buffers[kBlocks].as<std::uint8_t>() + b * kBlockBytes, values);
    for (std::int64_t j = 0; j < kBlockWeights; ++j) {
      const std::int64_t at = b * kBlockWeights + j;
      const auto v = static_cast<float>(values[j]);
      w[to_size(at)] = v;
      wt[to_size(at % K * N + at / K)] = v;
    }
  }
  const std::int64_t most = spec.params.value("judged_rows", std::int64_t{1} << 40);
  const std::uint64_t secret = *buffers[kSecret].as<std::uint64_t>();
  r.y = rows_of(M, most, substream(secret, 1), [&](std::int64_t m) {
    RowSum sum(N);
    for (std::int64_t k = 0; k < K; ++k) sum.add(x[m * K + k], wt.data() + k * N, 1);
    return sum.take(m);
  });
  r.dx = rows_of(M, most, substream(secret, 2), [&](std::int64_t m) {
    RowSum sum(K);
    for (std::int64_t n = 0; n < N; ++n) sum.add(dy[m * N + n], w.data() + n * K, 1);
    return sum.take(m);
  });
  r.dw = rows_of(N, most, substream(secret, 3), [&](std::int64_t n) {
    RowSum sum(K);
    for (std::int64_t m = 0; m < M; ++m) sum.add(dy[m * N + n], x + m * K, 1);
    return sum.take(n);
  });
  // Judges the other rows by secret projections.
  if (M > most) {
    r.all_y = Projections({M, K, N, x, K, 1, wt.data()}, substream(secret, 4));
    r.all_dx = Projections({M, N, K, dy, N, 1, w.data()}, substream(secret, 5));
  }
  if (N > most) r.all_dw = Projections({N, M, K, dy, 1, N, x}, substream(secret, 6));
  // Rounds to what a plain implementation would store.
  for (auto* rows : {&r.y, &r.dx}) {
    for (Row& row : *rows) {
      for (double& v : row.plain)
        v = bf16 ? static_cast<double>(bf16_to_float(float_to_bf16(static_cast<float>(v)))) : v;
    }
  }
}

// --- tt_train

// Statistics of neighbouring tokens, counted in the training documents: the baseline that training
// must beat.
class Bigram {
 public:
  Bigram(std::span<const std::uint16_t> docs, std::int64_t V, std::int64_t T)
      : V_(to_size(V)), pair_(V_ * V_), first_(V_), single_(V_, 1.0) {
    for (std::size_t i = 0; i < docs.size(); ++i) {
      if (i % to_size(T) == 0) continue;
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
  const auto T = to_size(s.call.config.T);
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

// --- tt_distill_loss

template <class Scalar>
struct Distilled {
  std::vector<Scalar> p, q;
  Scalar loss = 0, terms = 0;  // the sum, and the sum of its absolute terms
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
  const auto V = to_size(s.call.cols);
  const double tau = static_cast<double>(s.call.temperature);
  for (std::int64_t m = 0; m < s.call.M; ++m) {
    const std::size_t at = to_size(m) * V;
    const std::span<const float> teacher = buffers[kTeacher].span<float>().subspan(at, V),
                                 student = buffers[kStudent].span<float>().subspan(at, V);
    const auto exact = distilled<double>(teacher, student, s.call.temperature);
    const auto plain = distilled<float>(teacher, student, s.call.temperature);
    r.loss.push_back({m, {exact.loss}, {static_cast<double>(plain.loss)}, {exact.terms}});
    Row row{m, {}, {}, {}};
    for (std::size_t v = 0; v < V; ++v) {
      row.expected.push_back(tau * (exact.q[v] - exact.p[v]));
      row.plain.push_back(static_cast<double>(s.call.temperature * (plain.q[v] - plain.p[v])));
      // If both underflow in fp32, their absolute size counts.
      row.scale.push_back(tau * (exact.q[v] + exact.p[v] + 0x1p-100));
    }
    r.gradient.push_back(std::move(row));
  }
}

// --- tt_blob_statistics

int sign(double v) { return v > 0 ? 1 : v < 0 ? -1 : 0; }

void reference_statistics(const Shape& s, BufferViews buffers, TernReference& r) {
  using namespace statistics;
  const std::uint8_t* blob = buffers[kBlob].as<std::uint8_t>();
  const std::uint8_t* before =
      buffers[kBefore].bytes > 0 ? buffers[kBefore].as<std::uint8_t>() : blob;
  for (const MatrixSize& m : matrices_of(s.call.config)) {
    std::array<std::int64_t, kCountsPerMatrix> counts{};
    auto& [minus, zero, plus, dead_rows, dead_columns, changed, reversed] = counts;
    std::vector<char> used(to_size(m.cols));
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
          used[to_size(at + j)] = 1;
        }
      }
      dead_rows += !alive;
    }
    dead_columns = std::count(used.begin(), used.end(), 0);
    r.counts.insert(r.counts.end(), counts.begin(), counts.end());
  }
}

}  // namespace

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
    case kLogits: reference_logits(s, buffers, *r); break;
  }
  return r;
}

}  // namespace assay::ternary_training
