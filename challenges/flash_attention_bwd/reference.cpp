// The gradients in fp64, from q, k, v and dout alone, and beside them those of a plain fp32 (or half-width)
// implementation that reads the o and lse it is given, tile by tile of 64 queries.
#include <algorithm>
#include <cmath>

#include "assay/parallel.h"
#include "trusted.h"

namespace assay::flash_attention_bwd {
namespace {

using attention::Head;
using attention::Problem;
using attention::RowsD;
using attention::RowsF;
using attention::Tile;

// Weights below 2^-126 may be flushed to 0; what they would add to a gradient is no error beside this.
constexpr double kUnderflow = 1e-28;

void round_all(std::int32_t dtype, RowsF& m) {
  if (dtype == ASSAY_F32) return;
  for (float& x : m.reshaped()) x = attention::round_like(dtype, x);
}

// All query heads that read one key head.
class KeyHead {
 public:
  KeyHead(const Problem& problem, BufferViews buffers, BackwardReference& out, std::int64_t at)
      : problem_(problem), p_(problem.p), buffers_(buffers), out_(out), b_(at / p_.Hkv), kv_(at % p_.Hkv),
        dk_(out.dk[static_cast<std::size_t>(at)]), dv_(out.dv[static_cast<std::size_t>(at)]) {}

  void run() {
    dk_.resize(p_.Nk, p_.D);
    dv_.resize(p_.Nk, p_.Dv);
    plain_dk_ = RowsF::Zero(p_.Nk, p_.D);
    plain_dv_ = RowsF::Zero(p_.Nk, p_.Dv);
    for (std::int64_t g = 0; g < problem_.group(); ++g) query_head(kv_ * problem_.group() + g);
    store_plain(plain_dk_, dk_);
    store_plain(plain_dv_, dv_);
  }

 private:
  void query_head(std::int64_t h) {
    head_ = attention::load_head(problem_, b_, h, buffers_, buffers_[kAlibi].as<float>(), buffers_[kSink].as<float>());
    dout_ = attention::head_rows(p_.dtype, buffers_[kDout].data, p_.so, b_, h, p_.Nq, p_.Dv);
    o_ = attention::head_rows(p_.dtype, buffers_[kO].data, p_.so, b_, h, p_.Nq, p_.Dv);
    lse_ = buffers_[kLse].as<float>() + (b_ * p_.Hq + h) * p_.Nq;
    dlse_ = buffers_[kDlse].bytes == 0 ? nullptr : buffers_[kDlse].as<float>() + (b_ * p_.Hq + h) * p_.Nq;
    dq_ = &out_.dq[static_cast<std::size_t>(b_ * p_.Hq + h)];
    dq_->resize(p_.Nq, p_.D);
    plain_dq_ = RowsF::Zero(p_.Nq, p_.D);
    head_.finite = head_.finite && attention::tame(dout_);
    const std::int64_t step = attention::tile_rows(head_);
    for (std::int64_t first = 0; first < p_.Nq; first += step) {
      attention::make_tile(head_, first, std::min(step, p_.Nq - first), lse_, tile_);
      exact();
      plain();
      factors();
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
    round_all(p_.dtype, ds);
    round_all(p_.dtype, tile_.p32);
    for (std::int64_t j = 0; j < n; j += 64) {
      const std::int64_t m = std::min<std::int64_t>(64, n - j);
      plain_dq_.middleRows(tile_.first, tile_.rows) += p_.scale * (ds.middleCols(j, m) * k.middleRows(j, m));
    }
    plain_dk_.middleRows(tile_.lo, n) += p_.scale * (ds.transpose() * q);
    plain_dv_.middleRows(tile_.lo, n) += tile_.p32.transpose() * dout;
  }

  // Scores may be in units of log 2 and dot products plain sums of D terms; the given lse is rounded. A sum
  // over rows inherits the worst of them.
  void factors() {
    const auto keys = static_cast<double>(std::max<std::int64_t>(head_.keys, p_.Nq) * problem_.group());
    const double base = 32 + 4 * std::log2(std::max(keys, 1.0)) + std::sqrt(keys) / 2;
    for (std::int64_t i = 0; i < tile_.rows; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const double lse = std::isfinite(tile_.lse[at]) ? std::abs(tile_.lse[at]) : 0;
      const double conditioning = std::isfinite(tile_.conditioning[at]) ? tile_.conditioning[at] : 0;
      const double factor = base + (6 + static_cast<double>(p_.D) / 16) * conditioning + 2 * lse;
      dq_->factor[static_cast<std::size_t>(tile_.first + i)] = factor;
      for (std::int64_t j = tile_.range[at].lo; j < tile_.range[at].hi; ++j) {
        double& of_key = dk_.factor[static_cast<std::size_t>(j)];
        of_key = std::max(of_key, factor);
      }
    }
    dv_.factor = dk_.factor;
  }

  void store_plain(const RowsF& from, Gradient& to) const {
    to.plain = from.unaryExpr([&](float x) { return attention::round_like(p_.dtype, x); }).cast<double>();
  }

  const Problem& problem_;
  const fa_params& p_;
  BufferViews buffers_;
  BackwardReference& out_;
  std::int64_t b_, kv_;
  Gradient &dk_, &dv_, *dq_ = nullptr;
  RowsF plain_dq_, plain_dk_, plain_dv_, dout_, o_;
  const float *lse_ = nullptr, *dlse_ = nullptr;
  Head head_;
  Tile tile_;
};

}  // namespace

void Gradient::resize(std::int64_t rows, std::int64_t D) {
  expected = RowsD::Zero(rows, D);
  scale = RowsD::Constant(rows, D, kUnderflow);
  factor.assign(static_cast<std::size_t>(rows), 32);
}

std::unique_ptr<BackwardReference> make_reference(const Problem& problem, BufferViews buffers) {
  auto reference = std::make_unique<BackwardReference>();
  const fa_params& p = problem.p;
  reference->dq.resize(static_cast<std::size_t>(p.B * p.Hq));
  reference->dk.resize(static_cast<std::size_t>(p.B * p.Hkv));
  reference->dv.resize(static_cast<std::size_t>(p.B * p.Hkv));
  parallel_for(p.B * p.Hkv, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) KeyHead(problem, buffers, *reference, at).run();
  });
  return reference;
}

}  // namespace assay::flash_attention_bwd
