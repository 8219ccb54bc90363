// The gradients in fp64, from q, k, v and dout alone, and those of a plain fp32 (or half-width)
// implementation that reads the given o and lse, in tiles of 64 queries.
#include <algorithm>
#include <cmath>

#include "assay/parallel.h"
#include "assay/size.h"
#include "shared/score_rounding.h"
#include "trusted.h"
#include "util/reserved_memory.h"

namespace assay::flash_attention_bwd {
namespace {

using attention::Head;
using attention::Problem;
using attention::RowsD;
using attention::RowsF;
using attention::Tile;

// Weights below 2^-126 may be flushed to 0. Their share of a gradient is negligible next to this.
constexpr double kUnderflow = 1e-28;

void round_all(std::int32_t dtype, RowsF& m) {
  if (dtype == ASSAY_F32) return;
  for (float& x : m.reshaped()) x = attention::round_like(dtype, x);
}

// All query heads that read one key head.
class KeyHead {
 public:
  KeyHead(const Problem& problem, BufferViews buffers, BackwardReference& out, std::int64_t at)
      : problem_(problem),
        p_(problem.p),
        buffers_(buffers),
        out_(out),
        b_(at / p_.Hkv),
        kv_(at % p_.Hkv),
        dk_(out.dk[to_size(at)]),
        dv_(out.dv[to_size(at)]) {}

  void run() {
    const std::int64_t keys = problem_.key_rows_of(b_);
    dk_.resize(keys, p_.D);
    dv_.resize(keys, p_.Dv);
    plain_dk_ = RowsF::Zero(keys, p_.D);
    plain_dv_ = RowsF::Zero(keys, p_.Dv);
    for (std::int64_t g = 0; g < problem_.group(); ++g) query_head(kv_ * problem_.group() + g);
    store_plain(plain_dk_, dk_);
    store_plain(plain_dv_, dv_);
  }

 private:
  void query_head(std::int64_t h) {
    head_ = attention::load_head(problem_, b_, h, buffers_,
                                 {buffers_[kAlibi].as<float>(), buffers_[kSink].as<float>(),
                                  buffers_[kBias].as<float>(), nullptr});
    const std::int64_t rows = head_.queries, outputs = problem_.query_at(p_.so, b_, h, 0);
    dout_ = attention::head_rows(p_.dtype, buffers_[kDout].data, outputs, p_.so.n, rows, p_.Dv);
    o_ = attention::head_rows(p_.dtype, buffers_[kO].data, outputs, p_.so.n, rows, p_.Dv);
    lse_ = buffers_[kLse].as<float>() + problem_.lse_at(b_, h, 0);
    dlse_ = buffers_[kDlse].bytes == 0 ? nullptr
                                       : buffers_[kDlse].as<float>() + problem_.lse_at(b_, h, 0);
    dq_ = &out_.dq[to_size(b_ * p_.Hq + h)];
    dq_->resize(rows, p_.D);
    plain_dq_ = RowsF::Zero(rows, p_.D);
    if (!out_.o.empty()) {
      out_.o[to_size(b_ * p_.Hq + h)].resize(rows, p_.Dv);
      out_.lse[to_size(b_ * p_.Hq + h)].resize(rows, 1);
    }
    head_.finite = head_.finite && attention::tame(dout_);
    const std::int64_t step = attention::tile_rows(head_);
    for (std::int64_t first = 0; first < rows; first += step) {
      attention::make_tile(head_, first, std::min(step, rows - first), lse_, tile_);
      exact();
      plain();
      factors();
      if (!out_.o.empty()) outputs_of_forward();
    }
    store_plain(plain_dq_, *dq_);
  }

  void exact() {
    const std::int64_t n = tile_.hi - tile_.lo;
    const auto scale = static_cast<double>(p_.scale);
    const RowsD q = head_.q.middleRows(tile_.first, tile_.rows).cast<double>();
    const RowsD k = head_.k.middleRows(tile_.lo, n).cast<double>();
    const RowsD v = head_.v.middleRows(tile_.lo, n).cast<double>();
    const RowsD dout = dout_.middleRows(tile_.first, tile_.rows).cast<double>();
    const RowsD o = tile_.p * v;
    RowsD ds = dout * v.transpose();
    const Eigen::VectorXd delta = (tile_.p.array() * ds.array()).rowwise().sum();
    const Eigen::VectorXd spread = (dout.array() * o.array()).abs().rowwise().sum();
    RowsD a = dout.cwiseAbs() * v.cwiseAbs().transpose();
    for (std::int64_t i = 0; i < tile_.rows; ++i) {
      const double extra = dlse_ == nullptr ? 0 : static_cast<double>(dlse_[tile_.first + i]);
      ds.row(i).array() += extra - delta(i);
      a.row(i).array() += spread(i) + std::abs(extra);
    }
    ds.array() *= tile_.p.array();
    a.array() *= tile_.p.array();
    if (problem_.softcap > 0) {
      ds.array() *= tile_.slope.array();
      a.array() *= tile_.slope.array().abs();
    }
    each_bias(
        [&](std::int64_t i, std::int64_t j, Gradient& g, std::int64_t row, std::int64_t column) {
          g.expected(row, column) += ds(i, j);
          g.scale(row, column) += a(i, j);
        });
    dq_->expected.middleRows(tile_.first, tile_.rows) = scale * (ds * k);
    dq_->scale.middleRows(tile_.first, tile_.rows) += std::abs(scale) * (a * k.cwiseAbs());
    dk_.expected.middleRows(tile_.lo, n) += scale * (ds.transpose() * q);
    dk_.scale.middleRows(tile_.lo, n) += std::abs(scale) * (a.transpose() * q.cwiseAbs());
    dv_.expected.middleRows(tile_.lo, n) += tile_.p.transpose() * dout;
    dv_.scale.middleRows(tile_.lo, n) += tile_.p.transpose() * dout.cwiseAbs();
  }

  void plain() {
    const std::int64_t n = tile_.hi - tile_.lo;
    const auto q = head_.q.middleRows(tile_.first, tile_.rows);
    const auto k = head_.k.middleRows(tile_.lo, n);
    const auto dout = dout_.middleRows(tile_.first, tile_.rows);
    RowsF ds = dout * head_.v.middleRows(tile_.lo, n).transpose();
    for (std::int64_t i = 0; i < tile_.rows; ++i) {
      const float delta = dout.row(i).dot(o_.row(tile_.first + i));
      ds.row(i).array() += (dlse_ == nullptr ? 0.0f : dlse_[tile_.first + i]) - delta;
    }
    ds.array() *= tile_.p32.array();
    if (problem_.softcap > 0) ds.array() *= tile_.slope.array().cast<float>();
    each_bias(
        [&](std::int64_t i, std::int64_t j, Gradient& g, std::int64_t row, std::int64_t column) {
          g.plain(row, column) =
              static_cast<double>(static_cast<float>(g.plain(row, column)) + ds(i, j));
        });
    if (!out_.o.empty()) plain_o_ = tile_.p32 * head_.v.middleRows(tile_.lo, n);
    round_all(p_.dtype, ds);
    round_all(p_.dtype, tile_.p32);
    for (std::int64_t j = 0; j < n; j += 64) {
      const std::int64_t m = std::min<std::int64_t>(64, n - j);
      plain_dq_.middleRows(tile_.first, tile_.rows) +=
          p_.scale * (ds.middleCols(j, m) * k.middleRows(j, m));
    }
    plain_dk_.middleRows(tile_.lo, n) += p_.scale * (ds.transpose() * q);
    plain_dv_.middleRows(tile_.lo, n) += tile_.p32.transpose() * dout;
  }

  // Visits the visible pairs of the tile, with the place of their gradient in the bias gradient.
  template <class Body>
  void each_bias(Body body) {
    for (Gradient& g : out_.dbias) {
      for (std::int64_t i = 0; i < tile_.rows; ++i) {
        const std::int64_t row = problem_.bias_row(b_, head_.h, tile_.first + i);
        const attention::Range& r = tile_.range[to_size(i)];
        for (std::int64_t j = r.lo; j < r.hi; ++j)
          body(i, j - tile_.lo, g, row, problem_.bias_column(j));
      }
    }
  }

  // o, and lse shifted to an expected value of 1 with scale 1 (if it is finite), because its rule
  // is one on absolute errors.
  void outputs_of_forward() {
    const auto at = to_size(b_ * p_.Hq + head_.h);
    Gradient &o = out_.o[at], &lse = out_.lse[at];
    const RowsD v = head_.v.middleRows(tile_.lo, tile_.hi - tile_.lo).cast<double>();
    o.expected.middleRows(tile_.first, tile_.rows) = tile_.p * v;
    o.scale.middleRows(tile_.first, tile_.rows) += tile_.p * v.cwiseAbs();
    o.plain.middleRows(tile_.first, tile_.rows) =
        plain_o_.unaryExpr([&](float x) { return attention::round_like(p_.dtype, x); })
            .cast<double>();
    for (std::int64_t i = 0; i < tile_.rows; ++i) {
      const auto row = to_size(tile_.first + i);
      lse.expected(tile_.first + i, 0) = lse.plain(tile_.first + i, 0) = tile_.lse[to_size(i)];
      lse.scale(tile_.first + i, 0) = 1;
      o.factor[row] = lse.factor[row] = dq_->factor[row];
    }
  }

  // The row's roundings forward, the gradients' own, and those of the given lse. A sum over rows
  // inherits the worst of them.
  void factors() {
    const auto keys =
        static_cast<double>(std::max<std::int64_t>(head_.keys, head_.queries) * problem_.group());
    for (std::int64_t i = 0; i < tile_.rows; ++i) {
      const auto at = to_size(i);
      const double lse = std::isfinite(tile_.lse[at]) ? std::abs(tile_.lse[at]) : 0;
      const double factor = 16 + attention_roundings(keys, p_.D, tile_.conditioning[at]) + 2 * lse;
      dq_->factor[to_size(tile_.first + i)] = factor;
      for (std::int64_t j = tile_.range[at].lo; j < tile_.range[at].hi; ++j) {
        double& of_key = dk_.factor[to_size(j)];
        of_key = std::max(of_key, factor);
      }
      for (Gradient& g : out_.dbias) {
        // One value may collect the pairs of all heads and items.
        double& of_row = g.factor[to_size(problem_.bias_row(b_, head_.h, tile_.first + i))];
        const auto pairs = static_cast<double>(p_.B * p_.Hq * p_.Nq * p_.Nk) /
                           static_cast<double>(g.expected.size());
        of_row = std::max(of_row, factor + 4 * std::log2(pairs) + std::sqrt(pairs) / 2);
      }
    }
    dv_.factor = dk_.factor;
  }

  void store_plain(const RowsF& from, Gradient& to) const {
    to.plain =
        from.unaryExpr([&](float x) { return attention::round_like(p_.dtype, x); }).cast<double>();
  }

  const Problem& problem_;
  const fa_params& p_;
  BufferViews buffers_;
  BackwardReference& out_;
  std::int64_t b_, kv_;
  Gradient &dk_, &dv_, *dq_ = nullptr;
  RowsF plain_dq_, plain_dk_, plain_dv_, plain_o_, dout_, o_;
  const float *lse_ = nullptr, *dlse_ = nullptr;
  Head head_;
  Tile tile_;
};

}  // namespace

void Gradient::resize(std::int64_t rows, std::int64_t D) {
  expected = RowsD::Zero(rows, D);
  plain = RowsD::Zero(rows, D);
  scale = RowsD::Constant(rows, D, kUnderflow);
  factor.assign(to_size(rows), 32);
}

std::unique_ptr<BackwardReference> make_reference(const Problem& problem, bool chained,
                                                  BufferViews given) {
  auto reference = std::make_unique<BackwardReference>();
  const fa_params& p = problem.p;
  std::vector<BufferView> buffers(given.begin(), given.end());
  // In a chained case the submission writes o and lse; the plain backward pass gets the right ones.
  ReservedMemory o;  // its rows may be far apart
  std::vector<float> lse;
  if (chained) {
    const std::int64_t elements = attention::span_of(p.so, p.B, p.Hq, p.Nq, p.Dv);
    o = ReservedMemory(to_size(elements) * sizeof(float));
    lse.resize(to_size(p.B * p.Hq * p.Nq));
    buffers[kO] = {o.data(), o.bytes()};
    buffers[kLse] = {lse.data(), lse.size() * sizeof(float)};
    forward(problem, buffers);
    reference->o.resize(to_size(p.B * p.Hq));
    reference->lse.resize(to_size(p.B * p.Hq));
  }
  if (problem.bias) {
    const fa_bias& bias = problem.bias_shape;
    reference->dbias.resize(1);
    reference->dbias[0].resize(bias.B * bias.Hq * bias.Nq, bias.Nk);
  }
  reference->dq.resize(to_size(p.B * p.Hq));
  reference->dk.resize(to_size(p.B * p.Hkv));
  reference->dv.resize(to_size(p.B * p.Hkv));
  // All heads may add to the same bias value, so they run one after the other.
  const std::int64_t grain = problem.bias ? std::max<std::int64_t>(p.B * p.Hkv, 1) : 1;
  parallel_for(p.B * p.Hkv, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) KeyHead(problem, buffers, *reference, at).run();
  });
  return reference;
}

}  // namespace assay::flash_attention_bwd
