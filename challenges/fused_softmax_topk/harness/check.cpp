// Checks indices exactly, and probabilities and log-sum-exp within a few rounding errors of the
// argument, or four times the error of a plain fp32 implementation on the same row. A probability's
// error is relative to the probability, which bounds the row's relative Frobenius error too.
#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <mutex>

#include "assay/parallel.h"
#include "assay/size.h"
#include "assay/tolerance.h"
#include "trusted.h"

namespace assay::fused_softmax_topk {
namespace {

struct Worst {
  double error = 0, bound = 0, accuracy = 0;  // of the value nearest to its bound
  std::int64_t row = -1;                      // of the first failure
  std::string detail;

  void take(double e, double b) {
    if (bound == 0 || !(e / b <= error / bound)) {
      error = e;
      bound = b;
    }
  }
  void fail(std::int64_t r, std::string text) {
    if (row >= 0 && row <= r) return;
    row = r;
    detail = std::move(text);
  }
};

class Checker {
 public:
  Checker(const CaseSpec& spec, const TopKReference& reference, BufferViews buffers)
      : s_(shape_of(spec)),
        reference_(reference),
        buffers_(buffers),
        c_(spec.params.value("C", 16.0) +
           2 * std::log2(std::max<double>(static_cast<double>(s_.V), 2))) {}

  void row(std::int64_t r, std::vector<float>& scratch, Worst& worst) const {
    const RowReference& expected = reference_.rows[to_size(r)];
    const std::int32_t* idx = reference_.idx.data() + r * s_.K;
    const std::int32_t* got_idx = buffers_[kIdx].as<std::int32_t>() + r * s_.K;
    for (std::int32_t k = 0; k < s_.K; ++k) {
      if (got_idx[k] == idx[k]) continue;
      return worst.fail(r,
                        fmt::format("idx[{},{}]: got {}, expected {}", r, k, got_idx[k], idx[k]));
    }
    check_lse(r, expected, worst);
    // prob is recomputed from the reference's indices, which are inside the row.
    const float* x = row_values(s_, buffers_[kLogits].data, r, scratch);
    check_values(r, x, idx, expected, worst);
    if (s_.entry == kTopP) check_count(r, x, idx, expected, worst);
  }

 private:
  void check_lse(std::int64_t r, const RowReference& expected, Worst& worst) const {
    if (buffers_[kLse].bytes == 0) return;
    const double got = buffers_[kLse].as<float>()[r];
    if (expected.poisoned || !std::isfinite(expected.lse)) {
      const bool same = expected.poisoned ? std::isnan(got) : got == expected.lse;
      if (!same)
        worst.fail(r, fmt::format("lse[{}]: got {}, expected {}", r, got,
                                  expected.poisoned ? NAN : expected.lse));
      return;
    }
    const float lse32 = expected.max / s_.temperature + expected.log_sum32;
    const double plain = std::abs(static_cast<double>(lse32) - expected.lse);
    // The scaled maximum, what takes it to base e and their sum are rounded once each.
    const double floor = (c_ + 3 * std::abs(expected.lse)) * kEps32;
    const auto name = [&] { return fmt::format("lse[{}]", r); };
    compare(r, name, {got, expected.lse, 1.0}, plain, floor, worst);
  }

  // The required contents of a slot with a finite logit, by the reference and by plain fp32
  // arithmetic.
  struct Winner {
    double expected, plain, scale, floor;
  };

  double log_probability(float x, const RowReference& expected) const {
    return (static_cast<double>(x) - expected.max) / s_.temperature - expected.log_sum;
  }

  // `spread`: what rounding of large logits may do to a slot. Beyond 2^18 it would allow anything
  // in slots where it does nothing.
  Winner winner(float x, const RowReference& expected, double spread) const {
    const double logp = log_probability(x, expected);
    const float logp32 = (x - expected.max) / s_.temperature - expected.log_sum32;
    if (s_.entry == kLogTopK) {
      const double size = std::abs(logp) + 3 * std::abs(expected.lse);
      return {logp, double{logp32}, 1.0, (c_ + spread + size) * kEps32};
    }
    const double p = std::exp(logp);
    return {p, std::exp(double{logp32}), p + FLT_MIN, (c_ + spread) * kEps32};
  }

  void check_values(std::int64_t r, const float* x, const std::int32_t* idx,
                    const RowReference& expected, Worst& worst) const {
    const float* got = buffers_[kProb].as<float>() + r * s_.K;
    const std::int32_t n = finite_winners(x, idx, expected);
    const auto name = [&](std::int32_t k) {
      return [=] { return fmt::format("prob[{},{}]", r, k); };
    };
    double spread = 0, plain = 0;
    if (n > 0) spread = 2 * (static_cast<double>(expected.max) - x[idx[n - 1]]) / s_.temperature;
    spread = std::min(spread, 0x1p18);
    for (std::int32_t k = 0; k < n; ++k) {
      const Winner w = winner(x[idx[k]], expected, spread);
      plain = std::max(plain, std::abs(w.plain - w.expected) / w.scale);
    }
    for (std::int32_t k = 0; k < n; ++k) {
      const Winner w = winner(x[idx[k]], expected, spread);
      compare(r, name(k), {got[k], w.expected, w.scale}, plain, w.floor, worst);
    }
    for (std::int32_t k = n; k < s_.K; ++k)
      check_special(r, name(k), got[k], expected.poisoned, worst);
  }

  // Winners come in order, so those of -inf and unused slots come last.
  std::int32_t finite_winners(const float* x, const std::int32_t* idx,
                              const RowReference& expected) const {
    if (expected.poisoned) return 0;
    auto n = static_cast<std::int32_t>(std::min<std::int64_t>(s_.K, s_.V));
    while (n > 0 && !std::isfinite(x[idx[n - 1]])) --n;
    return n;
  }

  template <class Name>
  void check_special(std::int64_t r, Name name, float got, bool poisoned, Worst& worst) const {
    const float expected = poisoned ? NAN : s_.entry == kLogTopK ? -INFINITY : 0.0f;
    const bool same = poisoned ? std::isnan(got) : got == expected;
    if (!same) worst.fail(r, fmt::format("{}: got {}, expected {}", name(), got, expected));
  }

  struct Value {
    double got, expected, scale;
  };

  // |got - expected| / scale <= max(4 plain, floor).
  template <class Name>
  void compare(std::int64_t r, Name name, const Value& v, double plain, double floor,
               Worst& worst) const {
    const double error = std::abs(v.got - v.expected) / v.scale;
    const double bound = std::max(4 * plain, floor);
    worst.take(error, bound);
    const double rounding = kEps32 * std::max(1.0, std::abs(v.expected / v.scale));
    worst.accuracy = std::max(worst.accuracy, error / std::max(plain, rounding));
    if (!(error <= bound)) {
      worst.fail(r, fmt::format("{}: got {:.9g}, expected {:.9g}", name(), v.got, v.expected));
    }
  }

  // The fewest leading slots that reach top_p; a sum within rounding of it may go either way.
  void check_count(std::int64_t r, const float* x, const std::int32_t* idx,
                   const RowReference& expected, Worst& worst) const {
    const std::int32_t got = buffers_[kCount].as<std::int32_t>()[r];
    const auto n = static_cast<std::int32_t>(std::min<std::int64_t>(s_.K, s_.V));
    std::int32_t least = 0, most = 0;
    if (!expected.poisoned && std::isfinite(expected.lse) && n > 0) {
      const double slack = 1e-5;
      double sum = 0;
      least = most = n;
      for (std::int32_t k = n; k-- > 0;) sum += std::exp(log_probability(x[idx[k]], expected));
      for (std::int32_t k = n; k-- > 0;) {
        // sum covers slots 0..k.
        if (sum >= s_.top_p - slack) least = k + 1;
        if (sum >= s_.top_p + slack) most = k + 1;
        sum -= std::exp(log_probability(x[idx[k]], expected));
      }
      most = std::max(most, least);
    }
    if (got < least || got > most) {
      worst.fail(r, fmt::format("count[{}]: got {}, expected {}", r, got, least));
    }
  }

  Shape s_;
  const TopKReference& reference_;
  BufferViews buffers_;
  double c_;
};

}  // namespace

CheckResult check_outputs(const CaseSpec& spec, const TopKReference& reference,
                          BufferViews buffers) {
  const Checker checker(spec, reference, buffers);
  const auto rows = static_cast<std::int64_t>(reference.rows.size());
  Worst all;
  std::mutex mutex;
  parallel_for(rows, 8, [&](std::int64_t begin, std::int64_t end) {
    Worst worst;
    std::vector<float> scratch;
    for (std::int64_t r = begin; r < end; ++r) checker.row(r, scratch, worst);
    const std::lock_guard lock(mutex);
    all.accuracy = std::max(all.accuracy, worst.accuracy);
    if (worst.bound > 0) all.take(worst.error, worst.bound);
    if (worst.row >= 0) all.fail(worst.row, worst.detail);
  });
  CheckResult result;
  if (all.row >= 0) fail(result, all.detail);
  if (all.bound > 0) {
    result.error = all.error;
    result.bound = all.bound;
    result.accuracy = all.accuracy;
  }
  return result;
}

}  // namespace assay::fused_softmax_topk
