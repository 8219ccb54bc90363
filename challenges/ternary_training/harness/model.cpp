// The model in fp64, and in fp32 for its rounding spread.
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "assay/parallel.h"
#include "assay/size.h"
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
  Transformer(const tt_config& c, Reader<Scalar>& in) : c_(c), layers_(to_size(c.L)) {
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

  // The size of a logit whose terms do not happen to cancel, the largest in the vocabulary. The
  // last norm gives its row of d values the length |final_norm|, and signs are as good as random.
  double usual_logit() const {
    const M& w = c_.tied ? embedding_ : head_;
    if (w.rows() == 0) return 0;
    const auto row = static_cast<double>(w.rowwise().norm().maxCoeff()),
               h = static_cast<double>(final_norm_.norm());
    return row * h / std::sqrt(static_cast<double>(c_.d));
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

template <class Scalar>
Transformer<Scalar> given_model(const Shape& s, BufferViews buffers) {
  Reader<Scalar> reader(buffers[logits::kBlob].span<std::uint8_t>());
  return {s.call.config, reader};
}

template <class Scalar>
std::vector<double> all_logits(const Transformer<Scalar>& model, const Shape& s,
                               BufferViews buffers) {
  const tt_config& c = s.call.config;
  const std::int64_t per_doc = std::int64_t{c.T} * c.V;
  std::vector<double> out(to_size(s.call.n_docs * per_doc));
  for (std::int64_t i = 0; i < s.call.n_docs; ++i) {
    model.logits(buffers[logits::kDocs].as<std::uint16_t>() + i * c.T, out.data() + i * per_doc);
  }
  return out;
}

}  // namespace

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
                 std::vector<double> logits(to_size(T * V));
                 for (std::int64_t doc = begin; doc < end; ++doc) {
                   const std::uint16_t* tokens = docs.data() + doc * T;
                   model.logits(tokens, logits.data());
                   for (std::int64_t t = 0; t + 1 < T; ++t) {
                     const Eigen::Map<const Eigen::ArrayXd> row(logits.data() + t * V, V);
                     const double most = row.maxCoeff();
                     cost[to_size(doc * T + t + 1)] =
                         most + std::log((row - most).exp().sum()) - row[tokens[t + 1]];
                   }
                 }
               });
  return cost;
}

void reference_logits(const Shape& s, BufferViews buffers, TernReference& r) {
  const auto model = given_model<double>(s, buffers);
  r.logits = all_logits(model, s, buffers);
  r.usual_logit = model.usual_logit();
  r.logits32 = all_logits(given_model<float>(s, buffers), s, buffers);
}

}  // namespace assay::ternary_training
