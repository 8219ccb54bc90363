// The reference's gradients against central differences of full-matrix attention in long double, which share no code
// with it, against identities, the baselines, the examples, and outputs that must be rejected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "../../challenges/flash_attention_bwd/trusted.h"
#include "challenges/challenge_fixture.h"

namespace assay::flash_attention_bwd {
namespace {

using testing::ChallengeUnderTest;
using testing::Filled;

const ChallengeUnderTest& subject() {
  static const ChallengeUnderTest loaded("flash_attention_bwd");
  return loaded;
}

// --- the witness -----------------------------------------------------------------------------------

// The inputs of a case as long doubles in the caller's layout, and the scalar whose gradient the reference claims:
// L = sum over queries of dout . o (+ dlse lse), from the definition of attention.
class Witness {
 public:
  explicit Witness(const Filled& f) : problem_(attention::problem_of(f.spec())), p_(problem_.p), f_(f) {
    for (const int handle : {int{kQ}, int{kK}, int{kV}, int{kDout}}) arrays_.push_back(widened(f.buffer(handle)));
  }

  long double& q(std::int64_t at) { return arrays_[0][static_cast<std::size_t>(at)]; }
  long double& k(std::int64_t at) { return arrays_[1][static_cast<std::size_t>(at)]; }
  long double& v(std::int64_t at) { return arrays_[2][static_cast<std::size_t>(at)]; }

  // Only the queries of one item: elements of others do not depend on it.
  long double loss(std::int64_t b) {
    long double sum = 0;
    for (std::int64_t h = 0; h < p_.Hq; ++h) {
      for (std::int64_t i = 0; i < p_.Nq; ++i) sum += query(b, h, i);
    }
    return sum;
  }

 private:
  std::vector<long double> widened(const BufferView& view) const {
    std::vector<long double> out;
    if (p_.dtype == ASSAY_F32) {
      for (const float x : view.span<float>()) out.push_back(x);
    } else {
      for (const std::uint16_t x : view.span<std::uint16_t>()) out.push_back(p_.dtype == ASSAY_BF16 ? bf16_to_float(x) : f16_to_float(x));
    }
    return out;
  }

  long double query(std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::int64_t L = problem_.kv_len.empty() ? p_.Nk : problem_.kv_len[static_cast<std::size_t>(b)];
    const std::int64_t kv = h * p_.Hkv / p_.Hq, row = (b * p_.Hq + h) * p_.Nq + i;
    const std::int64_t out = b * p_.so.b + h * p_.so.h + i * p_.so.n;
    long double sum = 0, weighted = 0;
    if (problem_.sink) sum = std::exp(static_cast<long double>(f_.buffer(kSink).as<float>()[h]));
    bool any = problem_.sink;
    for (std::int64_t j = 0; j < L; ++j) {
      const std::int64_t ahead = j - (i + L - p_.Nq);
      if ((p_.causal != 0 && ahead > 0) || (p_.window > 0 && ahead <= -p_.window)) continue;
      any = true;
      long double s = 0, dot = 0;
      for (std::int64_t d = 0; d < p_.D; ++d) {
        s += q(b * p_.sq.b + h * p_.sq.h + i * p_.sq.n + d) * k(b * p_.sk.b + kv * p_.sk.h + j * p_.sk.n + d);
      }
      s *= p_.scale;
      if (problem_.softcap > 0) s = problem_.softcap * std::tanh(s / problem_.softcap);
      if (problem_.alibi) s -= f_.buffer(kAlibi).as<float>()[h] * static_cast<long double>(std::abs(ahead));
      for (std::int64_t d = 0; d < p_.Dv; ++d) {
        dot += arrays_[3][static_cast<std::size_t>(out + d)] * v(b * p_.sv.b + kv * p_.sv.h + j * p_.sv.n + d);
      }
      sum += std::exp(s);
      weighted += std::exp(s) * dot;
    }
    if (!any) return 0;
    const long double dlse = f_.buffer(kDlse).bytes != 0 ? f_.buffer(kDlse).as<float>()[row] : 0;
    return weighted / sum + dlse * std::log(sum);
  }

  attention::Problem problem_;
  const fa_params& p_;
  const Filled& f_;
  std::vector<std::vector<long double>> arrays_;
};

struct Tensor {
  const char* name;
  const std::vector<Gradient>& gradients;
  assay_stride stride;
  std::int64_t H, N, D;
  long double& (Witness::*element)(std::int64_t);
};

void expect_differences(const char* name, int probes) {
  SCOPED_TRACE(name);
  const Filled f(subject(), name, 13);
  const auto& reference = static_cast<const BackwardReference&>(f.reference());
  const fa_params p = attention::problem_of(f.spec()).p;
  Witness witness(f);
  std::mt19937_64 random(99);
  const Tensor tensors[] = {{"dq", reference.dq, p.sq, p.Hq, p.Nq, p.D, &Witness::q},
                            {"dk", reference.dk, p.sk, p.Hkv, p.Nk, p.D, &Witness::k},
                            {"dv", reference.dv, p.sv, p.Hkv, p.Nk, p.Dv, &Witness::v}};
  for (const Tensor& t : tensors) {
    for (int probe = 0; probe < probes; ++probe) {
      const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)); };
      const std::int64_t b = below(p.B), h = below(t.H), n = below(t.N), d = below(t.D);
      long double& x = (witness.*t.element)(b * t.stride.b + h * t.stride.h + n * t.stride.n + d);
      const long double middle = x, step = 1e-4L;
      x = middle + step;
      const long double up = witness.loss(b);
      x = middle - step;
      const long double down = witness.loss(b);
      x = middle;
      const Gradient& g = t.gradients[static_cast<std::size_t>(b * t.H + h)];
      ASSERT_NEAR(g.expected(n, d), static_cast<double>((up - down) / (2 * step)), 2e-6 * (g.scale(n, d) + 1e-3))
          << t.name << " b=" << b << " h=" << h << " n=" << n << " d=" << d;
    }
  }
}

TEST(FlashAttentionBackward, ReferenceAgreesWithCentralDifferences) {
  for (const char* name : {"n1", "head_dim_40", "axis_rowsum", "square", "nq_lt_nk", "lse_minus_inf", "strided_bshd", "gqa_8_2",
                           "scale_not_default", "value_dim_large", "f16_causal", "softcap", "alibi", "sink", "key_lengths",
                           "lse_gradient"}) {
    ASSERT_NO_FATAL_FAILURE(expect_differences(name, 6));
  }
}

// sum_j dS_ij = 0: with all keys equal dq vanishes; with all values equal dS does.
TEST(FlashAttentionBackward, CancellationsAreExactUpToRounding) {
  for (const char* name : {"sum_dk_zero", "dq_zero_constV"}) {
    const Filled f(subject(), name, 2);
    for (const Gradient& g : static_cast<const BackwardReference&>(f.reference()).dq) {
      EXPECT_LT((g.expected.array().abs() / g.scale.array()).maxCoeff(), 1e-13) << name;
    }
  }
}

// With q = 0 every visible weight is 1 / (i + 1), so dv_j = sum over i >= j of do_i / (i + 1).
TEST(FlashAttentionBackward, ZeroQueriesGiveMeans) {
  const Filled f(subject(), "dv_identity", 3);
  const fa_params p = attention::problem_of(f.spec()).p;
  const Gradient& dv = static_cast<const BackwardReference&>(f.reference()).dv.at(0);
  for (std::int64_t j = 0; j < p.Nk; j += 9) {
    double sum = 0;
    for (std::int64_t i = j; i < p.Nq; ++i) sum += static_cast<double>(f.buffer(kDout).as<float>()[i * p.Dv]) / static_cast<double>(i + 1);
    EXPECT_NEAR(dv.expected(j, 0), sum, 1e-13);
  }
}

TEST(FlashAttentionBackward, NanOfDoutStaysWithItsQueryAndItsKeys) {
  const Filled f(subject(), "nan_dout", 5);
  const auto& reference = static_cast<const BackwardReference&>(f.reference());
  for (std::int64_t n = 0; n < 90; ++n) {
    EXPECT_EQ(std::isnan(reference.dq.at(0).expected(n, 0)), n == 41) << n;
    EXPECT_EQ(std::isnan(reference.dk.at(0).expected(n, 0)), n <= 41) << n;
  }
}

TEST(FlashAttentionBackward, OutputAndLseAreThoseOfTheInputs) {
  const Filled f(subject(), "noncausal", 7);
  const fa_params p = attention::problem_of(f.spec()).p;
  // Row 5 of head 2, from the definition.
  const auto at = [&](int handle, std::int64_t h, std::int64_t n, std::int64_t d) {
    return static_cast<double>(f.buffer(handle).as<float>()[(h * p.Nq + n) * p.D + d]);
  };
  double sum = 0, o = 0;
  for (std::int64_t j = 0; j < p.Nk; ++j) {
    double s = 0;
    for (std::int64_t d = 0; d < p.D; ++d) s += at(kQ, 2, 5, d) * at(kK, 2, j, d);
    sum += std::exp(s * static_cast<double>(p.scale));
    o += std::exp(s * static_cast<double>(p.scale)) * at(kV, 2, j, 3);
  }
  EXPECT_NEAR(at(kO, 2, 5, 3), o / sum, 1e-6);
  EXPECT_NEAR(static_cast<double>(f.buffer(kLse).as<float>()[2 * p.Nq + 5]), std::log(sum), 1e-6);
}

// --- the baselines, the examples, rejected outputs -------------------------------------------------

TEST(FlashAttentionBackward, BaselinesPassEveryCaseThatIsNotTimed) {
  testing::expect_passes(subject(), "naive.cpp", 2);
  testing::expect_passes(subject(), "par.cpp", 3);
}

TEST(FlashAttentionBackward, EveryTrapIsInTheListOfAnExample) { testing::expect_traps_covered(subject()); }

TEST(FlashAttentionBackward, InputsFollowFromTheSeed) {
  for (const char* name : {"causal_64", "lse_near_50", "bf16_causal"}) {
    for (const int handle : {int{kK}, int{kDout}, int{kO}}) {
      EXPECT_EQ(Filled(subject(), name, 5).bytes(handle), Filled(subject(), name, 5).bytes(handle)) << name;
      EXPECT_NE(Filled(subject(), name, 5).bytes(handle), Filled(subject(), name, 6).bytes(handle)) << name;
    }
  }
}

void answer(const Filled& f, int handle, const std::vector<Gradient>& gradients) {
  float* out = f.buffer(handle).as<float>();
  for (const Gradient& g : gradients) {
    for (std::int64_t i = 0; i < g.expected.size(); ++i) *out++ = static_cast<float>(g.expected.data()[i]);
  }
}

TEST(FlashAttentionBackward, TheRightAnswerPassesAndEachWrongOutputFails) {
  const auto with = [](auto spoil) {
    Filled f(subject(), "causal_64", 3);
    const auto& reference = static_cast<const BackwardReference&>(f.reference());
    answer(f, kDq, reference.dq);
    answer(f, kDk, reference.dk);
    answer(f, kDv, reference.dv);
    spoil(f);
    return f.check();
  };
  EXPECT_TRUE(with([](Filled&) {}).pass);
  for (const int handle : {int{kDq}, int{kDk}, int{kDv}}) {
    for (const int byte : {0x00, 0xff, 0x7f}) {
      const CheckResult result = with([&](Filled& f) { std::memset(f.buffer(handle).data, byte, f.buffer(handle).bytes); });
      EXPECT_FALSE(result.pass) << "buffer " << handle << ", bytes " << byte;
      EXPECT_NE(result.detail, "");
    }
    EXPECT_FALSE(with([&](Filled& f) { f.buffer(handle).as<float>()[77] += 1e-3f; }).pass) << handle;
  }
}

TEST(FlashAttentionBackward, UntouchedOutputsFailEveryCaseThatHasSome) {
  testing::expect_untouched_outputs_fail(subject(), {kDq, kDk, kDv});
}

}  // namespace
}  // namespace assay::flash_attention_bwd
