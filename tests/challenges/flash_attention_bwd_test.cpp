// The reference's gradients against central differences of full-matrix attention in long double,
// which share no code with it, against identities, the baselines, the examples, and outputs that
// must be rejected.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "challenges/challenge_fixture.h"
#include "challenges/recorded_attention.h"
#include "challenges/recorded_case.h"
#include "trusted.h"

namespace assay::flash_attention_bwd {
namespace {

using testing::ChallengeUnderTest;
using testing::Filled;

const ChallengeUnderTest& subject() {
  static const ChallengeUnderTest loaded("flash_attention_bwd");
  return loaded;
}

// --- the witness
// -----------------------------------------------------------------------------------

// The inputs of a case as long doubles in the caller's layout, and the scalar whose gradient the
// reference claims to compute: L = sum over queries of dout . o (+ dlse lse), from the definition
// of attention.
class Witness {
 public:
  explicit Witness(const Filled& f)
      : problem_(attention::problem_of(f.spec())), p_(problem_.p), f_(f) {
    for (const int handle : {int{kQ}, int{kK}, int{kV}, int{kDout}})
      arrays_.push_back(widened(f.buffer(handle)));
    for (const float x : f.buffer(kBias).span<float>()) bias_.push_back(x);
    if (f.buffer(kCuQ).bytes == 0) return;
    cu_q_ = f.buffer(kCuQ).span<std::int64_t>();
    cu_k_ = f.buffer(kCuK).span<std::int64_t>();
  }

  long double& q(std::int64_t at) { return arrays_[0][static_cast<std::size_t>(at)]; }
  long double& k(std::int64_t at) { return arrays_[1][static_cast<std::size_t>(at)]; }
  long double& v(std::int64_t at) { return arrays_[2][static_cast<std::size_t>(at)]; }
  long double& bias(std::int64_t at) { return bias_[static_cast<std::size_t>(at)]; }

  // The number of queries of item b, and the first one in the arrays.
  std::int64_t queries(std::int64_t b) const {
    return cu_q_.empty() ? p_.Nq : cu_q_[at(b + 1)] - cu_q_[at(b)];
  }
  std::int64_t keys(std::int64_t b) const {
    return cu_k_.empty() ? p_.Nk : cu_k_[at(b + 1)] - cu_k_[at(b)];
  }
  std::int64_t first_query(std::int64_t b) const { return cu_q_.empty() ? 0 : cu_q_[at(b)]; }
  std::int64_t first_key(std::int64_t b) const { return cu_k_.empty() ? 0 : cu_k_[at(b)]; }

  // Only over the queries of one item: other items do not depend on its elements.
  long double loss(std::int64_t b) {
    long double sum = 0;
    for (std::int64_t h = 0; h < p_.Hq; ++h) {
      for (std::int64_t i = 0; i < queries(b); ++i) sum += query(b, h, i);
    }
    return sum;
  }

 private:
  std::vector<long double> widened(const BufferView& view) const {
    std::vector<long double> out;
    if (p_.dtype == ASSAY_F32) {
      for (const float x : view.span<float>()) out.push_back(x);
    } else {
      for (const std::uint16_t x : view.span<std::uint16_t>())
        out.push_back(p_.dtype == ASSAY_BF16 ? bf16_to_float(x) : f16_to_float(x));
    }
    return out;
  }

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  std::int64_t bias_at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    const std::int64_t sizes[] = {p_.B, p_.Hq, p_.Nq, p_.Nk}, index[] = {b, h, i, j};
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < 4; ++d)
      offset = ones_[d] == 1 ? offset : offset * sizes[d] + index[d];
    return offset;
  }

  long double query(std::int64_t b, std::int64_t h, std::int64_t i) {
    const std::int64_t L =
        problem_.kv_len.empty() ? keys(b) : problem_.kv_len[static_cast<std::size_t>(b)];
    const std::int64_t kv = h * p_.Hkv / p_.Hq, row = (b * p_.Hq + h) * p_.Nq + i;
    const std::int64_t out = b * p_.so.b + h * p_.so.h + (first_query(b) + i) * p_.so.n;
    const std::int64_t i_at = first_query(b) + i;
    long double sum = 0, weighted = 0;
    if (problem_.sink) sum = std::exp(static_cast<long double>(f_.buffer(kSink).as<float>()[h]));
    bool any = problem_.sink;
    for (std::int64_t j = 0; j < L; ++j) {
      const std::int64_t ahead = j - (i + L - queries(b));
      if ((p_.causal != 0 && ahead > 0) || (p_.window > 0 && ahead <= -p_.window)) continue;
      any = true;
      long double s = 0, dot = 0;
      for (std::int64_t d = 0; d < p_.D; ++d) {
        s += q(b * p_.sq.b + h * p_.sq.h + i_at * p_.sq.n + d) *
             k(b * p_.sk.b + kv * p_.sk.h + (first_key(b) + j) * p_.sk.n + d);
      }
      s *= p_.scale;
      if (problem_.softcap > 0) s = problem_.softcap * std::tanh(s / problem_.softcap);
      if (problem_.alibi)
        s -= f_.buffer(kAlibi).as<float>()[h] * static_cast<long double>(std::abs(ahead));
      if (!bias_.empty()) s += bias(bias_at(b, h, i, j));
      for (std::int64_t d = 0; d < p_.Dv; ++d) {
        dot += arrays_[3][static_cast<std::size_t>(out + d)] *
               v(b * p_.sv.b + kv * p_.sv.h + (first_key(b) + j) * p_.sv.n + d);
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
  std::vector<long double> bias_;
  std::vector<std::int64_t> ones_ = f_.spec().params.value("bias", std::vector<std::int64_t>{});
  std::span<const std::int64_t> cu_q_, cu_k_;
};

// (loss(x + step) - loss(x - step)) / (2 step) of the items that depend on x.
double difference(Witness& witness, long double& x, std::int64_t first, std::int64_t end) {
  const long double middle = x, step = 1e-4L;
  long double change = 0;
  for (const int sign : {1, -1}) {
    x = middle + sign * step;
    for (std::int64_t b = first; b < end; ++b) change += sign * witness.loss(b);
  }
  x = middle;
  return static_cast<double>(change / (2 * step));
}

struct Tensor {
  const char* name;
  const std::vector<Gradient>& gradients;
  assay_stride stride;
  std::int64_t H, D;
  bool of_keys;
  long double& (Witness::*element)(std::int64_t);
};

void expect_differences(const char* name, int probes) {
  SCOPED_TRACE(name);
  const Filled f(subject(), name, 13);
  const auto& reference = f.reference_as<BackwardReference>();
  const fa_params p = attention::problem_of(f.spec()).p;
  Witness witness(f);
  std::mt19937_64 random(99);
  const Tensor tensors[] = {{"dq", reference.dq, p.sq, p.Hq, p.D, false, &Witness::q},
                            {"dk", reference.dk, p.sk, p.Hkv, p.D, true, &Witness::k},
                            {"dv", reference.dv, p.sv, p.Hkv, p.Dv, true, &Witness::v}};
  for (const Tensor& t : tensors) {
    for (int probe = 0; probe < probes; ++probe) {
      const auto below = [&](std::int64_t n) {
        return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
      };
      const std::int64_t b = below(p.B), h = below(t.H), d = below(t.D);
      const std::int64_t rows = t.of_keys ? witness.keys(b) : witness.queries(b);
      if (rows == 0) continue;
      const std::int64_t n = below(rows),
                         at = n + (t.of_keys ? witness.first_key(b) : witness.first_query(b));
      long double& x = (witness.*t.element)(b * t.stride.b + h * t.stride.h + at * t.stride.n + d);
      const Gradient& g = t.gradients[static_cast<std::size_t>(b * t.H + h)];
      ASSERT_EQ(g.expected.rows(), rows);
      ASSERT_NEAR(g.expected(n, d), difference(witness, x, b, b + 1), 2e-6 * (g.scale(n, d) + 1e-3))
          << t.name << " b=" << b << " h=" << h << " n=" << n << " d=" << d;
    }
  }
  // A value of the bias may be used by all items.
  for (int probe = 0; probe < probes && !reference.dbias.empty(); ++probe) {
    const Gradient& g = reference.dbias[0];
    const auto at =
        static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(g.expected.size()));
    ASSERT_NEAR(g.expected.data()[at], difference(witness, witness.bias(at), 0, p.B),
                2e-6 * (g.scale.data()[at] + 1e-3))
        << "dbias " << at;
  }
}

TEST(FlashAttentionBackward, ReferenceAgreesWithCentralDifferences) {
  for (const char* name : {"n1",
                           "head_dim_40",
                           "axis_rowsum",
                           "square",
                           "nq_lt_nk",
                           "lse_minus_inf",
                           "strided_bshd",
                           "gqa_8_2",
                           "scale_not_default",
                           "value_dim_large",
                           "f16_causal",
                           "softcap",
                           "alibi",
                           "sink",
                           "key_lengths",
                           "lse_gradient",
                           "varlen_causal",
                           "varlen_cross",
                           "varlen_not_causal",
                           "bias_full",
                           "bias_of_heads",
                           "bias_of_keys"}) {
    ASSERT_NO_FATAL_FAILURE(expect_differences(name, 6));
  }
}

// sum_j dS_ij = 0: with all keys equal dq vanishes; with all values equal dS does.
TEST(FlashAttentionBackward, CancellationsAreExactUpToRounding) {
  for (const char* name : {"sum_dk_zero", "dq_zero_constV"}) {
    const Filled f(subject(), name, 2);
    for (const Gradient& g : f.reference_as<BackwardReference>().dq) {
      EXPECT_LT((g.expected.array().abs() / g.scale.array()).maxCoeff(), 1e-13) << name;
    }
  }
}

// With q = 0 every visible weight is 1 / (i + 1), so dv_j = sum over i >= j of do_i / (i + 1).
TEST(FlashAttentionBackward, ZeroQueriesGiveMeans) {
  const Filled f(subject(), "dv_identity", 3);
  const fa_params p = attention::problem_of(f.spec()).p;
  const Gradient& dv = f.reference_as<BackwardReference>().dv.at(0);
  for (std::int64_t j = 0; j < p.Nk; j += 9) {
    double sum = 0;
    for (std::int64_t i = j; i < p.Nq; ++i)
      sum +=
          static_cast<double>(f.buffer(kDout).as<float>()[i * p.Dv]) / static_cast<double>(i + 1);
    EXPECT_NEAR(dv.expected(j, 0), sum, 1e-13);
  }
}

// Far beyond the cap, 1 - tanh^2 is below the rounding of 1, but the gradients are not 0 yet.
TEST(FlashAttentionBackward, ScoresFarBeyondTheCapHaveGradients) {
  CaseSpec spec = subject().case_named("softcap");
  spec.params["Hq"] = 1;
  spec.params["Nq"] = 1;
  spec.params["Nk"] = 2;
  spec.params["causal"] = false;
  spec.params["data"] = {{"q_sigma", 400.0}};
  int capped = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Filled f(subject(), spec, seed);
    const fa_params p = attention::problem_of(f.spec()).p;
    double least = INFINITY;
    for (std::int64_t j = 0; j < p.Nk; ++j) {
      double s = 0;
      for (std::int64_t d = 0; d < p.D; ++d)
        s += static_cast<double>(f.buffer(kQ).as<float>()[d]) *
             f.buffer(kK).as<float>()[j * p.D + d];
      least = std::min(least, std::abs(s * p.scale / 5.0));
    }
    if (least < 20 || least > 300) continue;  // 5 is the case's cap
    ++capped;
    const Gradient& dq = f.reference_as<BackwardReference>().dq.at(0);
    EXPECT_GT(dq.expected.array().abs().maxCoeff(), 0) << "seed " << seed;
  }
  EXPECT_GT(capped, 3);
}

TEST(FlashAttentionBackward, NanOfDoutStaysWithItsQueryAndItsKeys) {
  const Filled f(subject(), "nan_dout", 5);
  const auto& reference = f.reference_as<BackwardReference>();
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

// --- the baselines, the examples, rejected outputs
// -------------------------------------------------

TEST(FlashAttentionBackward, BaselinesPassEveryCaseThatIsNotTimed) {
  testing::expect_passes(subject(), "baselines/naive.cpp", 2);
  testing::expect_passes(subject(), "baselines/par.cpp", 3, {"bias_gradient", "chained_forward"});
}

TEST(FlashAttentionBackward, EveryTrapIsInTheListOfAnExample) {
  testing::expect_traps_covered(subject());
}

TEST(FlashAttentionBackward, InputsFollowFromTheSeed) {
  for (const char* name : {"causal_64", "lse_near_50", "bf16_causal"}) {
    testing::expect_inputs_follow_from_seed(subject(), name, {kK, kDout, kO});
  }
}

TEST(FlashAttentionBackward, EveryBufferIsPlanned) {
  testing::expect_every_handle_planned(subject(), kHandles);
}

// A case with its own forward pass expects of it what the same inputs without one are given.
TEST(FlashAttentionBackward, ChainedCasesJudgeTheForwardPass) {
  const Filled f(subject(), "chained_rows_without_keys", 5);
  const auto& reference = f.reference_as<BackwardReference>();
  const fa_params p = attention::problem_of(f.spec()).p;
  ASSERT_EQ(reference.o.size(), 2u);
  for (std::int64_t i = 0; i < p.Nq; ++i) {
    const std::int64_t keys = std::max<std::int64_t>(i + p.Nk - p.Nq + 1, 0);
    long double sum = 0, o = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      long double s = 0;
      for (std::int64_t d = 0; d < p.D; ++d) {
        s += static_cast<long double>(f.buffer(kQ).as<float>()[p.sq.h + i * p.sq.n + d]) *
             static_cast<long double>(f.buffer(kK).as<float>()[p.sk.h + j * p.sk.n + d]);
      }
      sum += std::exp(s * p.scale);
      o += std::exp(s * p.scale) * f.buffer(kV).as<float>()[p.sv.h + j * p.sv.n + 5];
    }
    EXPECT_NEAR(reference.o[1].expected(i, 5), keys == 0 ? 0.0 : static_cast<double>(o / sum),
                1e-12)
        << i;
    if (keys == 0) {
      EXPECT_EQ(reference.lse[1].expected(i, 0), -HUGE_VAL) << i;
    } else {
      EXPECT_NEAR(reference.lse[1].expected(i, 0), static_cast<double>(std::log(sum)), 1e-12) << i;
    }
  }
}

void answer(const Filled& f, int handle, const std::vector<Gradient>& gradients) {
  float* out = f.buffer(handle).as<float>();
  for (const Gradient& g : gradients) {
    for (std::int64_t i = 0; i < g.expected.size(); ++i)
      *out++ = static_cast<float>(g.expected.data()[i]);
  }
}

TEST(FlashAttentionBackward, TheRightAnswerPassesAndEachWrongOutputFails) {
  const auto with = [](auto spoil) {
    Filled f(subject(), "causal_64", 3);
    const auto& reference = f.reference_as<BackwardReference>();
    answer(f, kDq, reference.dq);
    answer(f, kDk, reference.dk);
    answer(f, kDv, reference.dv);
    spoil(f);
    return f.check();
  };
  EXPECT_TRUE(with([](Filled&) {}).pass);
  for (const int handle : {int{kDq}, int{kDk}, int{kDv}}) {
    for (const int byte : {0x00, 0xff, 0x7f}) {
      const CheckResult result = with([&](Filled& f) { f.overwrite(handle, byte); });
      EXPECT_FALSE(result.pass) << "buffer " << handle << ", bytes " << byte;
      EXPECT_NE(result.detail, "");
    }
    EXPECT_FALSE(with([&](Filled& f) { f.buffer(handle).as<float>()[77] += 1e-3f; }).pass)
        << handle;
  }
}

TEST(FlashAttentionBackward, EachWrongOutputOfAChainedOrBiasedCaseFails) {
  const auto with = [](const char* name, auto spoil) {
    Filled f(subject(), name, 3);
    const auto& reference = f.reference_as<BackwardReference>();
    answer(f, kDq, reference.dq);
    answer(f, kDk, reference.dk);
    answer(f, kDv, reference.dv);
    if (f.buffer(kDbias).bytes != 0) answer(f, kDbias, reference.dbias);
    if (!reference.o.empty()) {
      answer(f, kO, reference.o);
      answer(f, kLse, reference.lse);
    }
    spoil(f);
    return f.check().pass;
  };
  for (const char* name : {"chained", "bias_of_keys"}) {
    EXPECT_TRUE(with(name, [](Filled&) {}));
    for (const int handle : {int{kDq}, int{kDk}, int{kDv}}) {
      EXPECT_FALSE(with(name, [&](Filled& f) { f.buffer(handle).as<float>()[77] += 1e-2f; }))
          << name << handle;
    }
  }
  EXPECT_FALSE(with("chained", [](Filled& f) { f.buffer(kO).as<float>()[3000] += 1e-3f; }));
  EXPECT_FALSE(with("chained", [](Filled& f) { f.buffer(kLse).as<float>()[50] += 1e-4f; }));
  EXPECT_FALSE(
      with("bias_of_heads", [](Filled& f) { f.buffer(kDbias).as<float>()[140] += 1e-3f; }));
}

TEST(FlashAttentionBackward, UntouchedOutputsFailEveryCaseThatHasSome) {
  testing::expect_untouched_outputs_fail(subject(), {kDq, kDk, kDv, kDbias});
}

// Except those with NaN somewhere, with two calls, or without batch, heads or width.
TEST(FlashAttentionBackwardRecorded, TheCasesComeBack) {
  EXPECT_THAT(testing::not_recorded(subject()),
              ::testing::UnorderedElementsAre(
                  "alibi_masked_poison", "batch0", "bf16_nan", "bias_full", "chained",
                  "chained_large_scores", "chained_rows_without_keys", "double_call", "f16_nan",
                  "head_dim_0", "hq_0", "masked_poison", "masked_poison_of_each_item", "nan_dout",
                  "no_heads", "unseen_keys", "varlen_cross", "varlen_nan"));
}

TEST(FlashAttentionBackwardRecorded, ArgumentsThatAreNotLegalOrTooLargeAreNoCase) {
  testing::expect_forged_arguments_refused<Params>(subject());
}

TEST(FlashAttentionBackwardRecorded, LengthsThatDoNotAscendAreNoCase) {
  testing::expect_only_ascending_lengths(subject(), kCuK);
}

TEST(FlashAttentionBackwardRecorded, OAndLseOfAnotherForwardAreNoCaseAndRoughOnesArePutRight) {
  const Filled filled(subject(), "causal_64", 1);
  std::vector<float> lse(filled.buffer(kLse).bytes / 4);
  std::memcpy(lse.data(), filled.buffer(kLse).data, lse.size() * 4);
  const float exact = lse[0];
  for (const float off : {1e-3f, 1.0f, NAN}) {
    lse[0] = exact + off;
    testing::RecordedCase recorded(filled);
    recorded.array(kLse).bytes = std::as_bytes(std::span(lse));
    cases::GivenInputs given(*subject().challenge);
    const auto spec = given.take(recorded.call);
    EXPECT_EQ(spec.has_value(), off == 1e-3f) << off;
    if (!spec) continue;
    Filled refilled(subject(), "causal_64", 2);
    given.fill(*spec, given.plan(*spec), Seeds(1), refilled.buffers());
    EXPECT_EQ(refilled.buffer(kLse).as<float>()[0], exact);
  }
}

}  // namespace
}  // namespace assay::flash_attention_bwd
