// The reference against central differences of a forward pass written here, the baselines, the
// examples, and outputs that must be rejected.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "challenges/challenge_fixture.h"
#include "challenges/recorded_case.h"
#include "trusted.h"

namespace assay::layer_norm_backward {
namespace {

using testing::ChallengeUnderTest;
using testing::Filled;
using Vector = std::vector<double>;

const ChallengeUnderTest& subject() {
  static const ChallengeUnderTest loaded("layer_norm_backward");
  return loaded;
}

// The loss sum(dy * y) of rows with the textbook's forward pass, in double.
double loss(const Vector& x, const Vector& gamma, const Vector& beta, const Vector& dy,
            std::size_t D, double eps) {
  double total = 0;
  for (std::size_t r = 0; r * D < x.size(); ++r) {
    double mean = 0, var = 0;
    for (std::size_t i = 0; i < D; ++i) mean += x[r * D + i];
    mean /= static_cast<double>(D);
    for (std::size_t i = 0; i < D; ++i) var += std::pow(x[r * D + i] - mean, 2);
    const double rstd = 1 / std::sqrt(var / static_cast<double>(D) + eps);
    for (std::size_t i = 0; i < D; ++i) {
      total += dy[r * D + i] * ((x[r * D + i] - mean) * rstd * gamma[i] + beta[i]);
    }
  }
  return total;
}

double central_difference(Vector& v, std::size_t i, const std::function<double()>& f) {
  const double h = 1e-6, old = v[i];
  v[i] = old + h;
  const double up = f();
  v[i] = old - h;
  const double down = f();
  v[i] = old;
  return (up - down) / (2 * h);
}

TEST(LayerNormReference, AgreesWithCentralDifferences) {
  for (const char* name : {"biased_D3", "d7", "gamma_zero_neg", "eps_1e_3"}) {
    const Filled f(subject(), name, 11);
    const Shape s = shape_of(f.spec());
    const auto& g = f.reference_as<Gradients>();
    const auto wide = [&](int handle) {
      const auto span = f.buffer(handle).span<float>();
      return Vector(span.begin(), span.end());
    };
    Vector x = wide(kX), gamma = wide(kGamma), beta = wide(kBeta), dy = wide(kDy);
    const auto D = static_cast<std::size_t>(s.D);
    const auto L = [&] { return loss(x, gamma, beta, dy, D, s.eps); };
    for (std::size_t j = 0; j < std::min<std::size_t>(D, 8); ++j) {
      EXPECT_NEAR(g.dgamma[j], central_difference(gamma, j, L), 1e-6 * g.dgamma_scale[j])
          << name << " dgamma " << j;
      EXPECT_NEAR(g.dbeta[j], central_difference(beta, j, L), 1e-6 * g.dbeta_scale[j])
          << name << " dbeta " << j;
    }
    for (const std::int64_t r : {std::int64_t{0}, s.rows - 1}) {
      RowResult row(s.D);
      dx_row(s, g, f.buffers(), r, row);
      for (std::size_t j = 0; j < std::min<std::size_t>(D, 8); ++j) {
        const double numeric = central_difference(x, static_cast<std::size_t>(r) * D + j, L);
        EXPECT_NEAR(row.expected[j], numeric, 2e-6 * (1 + row.scale[j]))
            << name << " dx " << r << "," << j;
      }
    }
  }
}

TEST(LayerNormGenerator, DependsOnTheSeedAlone) {
  testing::expect_inputs_follow_from_seed(subject(), "basic", {kX, kGamma, kDy});
}

TEST(LayerNormPlan, HasEveryBuffer) { testing::expect_every_handle_planned(subject(), kHandles); }

TEST(LayerNormChecker, RejectsUntouchedZeroAndNanOutputs) {
  testing::expect_blank_outputs_fail(subject(), "basic");
}

TEST(LayerNormBaseline, PassesEveryUntimedCase) {
  testing::expect_passes(subject(), "baselines/naive.cpp", 3);
  testing::expect_passes(subject(), "baselines/par.cpp", 3, {"rmsnorm"});
}

testing::DirectRunner tuned() {
  const std::string source =
      testing::source_dir() + "/submissions/tuned/layer_norm_backward/submission.cpp";
  return testing::DirectRunner(subject().name, testing::compile(source, subject().name));
}

// 32,000 terms, of which every eighth is about the same, summed in 8 or 16 lanes.
TEST(LayerNormChecker, AdmitsPlainSumsOverALongRow) {
  testing::DirectRunner runner = tuned();
  CaseSpec c = subject().case_named("basic");
  c.params = {{"rows", 2}, {"D", 32000}, {"eps", 1.0}, {"x", {{"sigma", 0.001}}}};
  c.params["dy"] = {{"kind", "column_constant"}};
  c.params["gamma"] = {{"kind", "ones"}};
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    const CaseResult result = runner.run(c, seed);
    ASSERT_EQ(result.verdict, Verdict::ok) << "seed " << seed << ": " << result.detail;
  }
}

// With one row, the sum over rows is that row: dgamma is off by as much as the mean and rstd are.
TEST(LayerNormChecker, AdmitsInDgammaWhatAPlainSumOverALongRowIsOff) {
  testing::DirectRunner runner = tuned();
  CaseSpec c = subject().case_named("basic");
  c.params = {{"rows", 1}, {"D", 14784}, {"eps", 1e-12}, {"x", {{"sigma", 1000.0}}}};
  c.params["dy"] = {{"sigma", 0.0001}};
  const CaseResult result = runner.run(c, 9956854475755047532u);
  EXPECT_EQ(result.verdict, Verdict::ok) << result.detail;
}

TEST(LayerNormExamples, CoverEveryTrap) { testing::expect_traps_covered(subject()); }

TEST(LayerNormBackwardRecorded, EveryCaseOfOneBackwardComesBack) {
  EXPECT_THAT(testing::not_recorded(subject(), {kOtherX}),
              ::testing::UnorderedElementsAre("accumulate_twice", "older_cache"));
}

TEST(LayerNormBackwardRecorded, AForwardComesBackWithoutItsGradients) {
  const Filled filled(subject(), "basic", 1);
  testing::RecordedCase recorded(filled);
  std::erase_if(recorded.call.arrays, [](const RecordedCall::Array& a) {
    return a.handle == kDy || a.handle == kDx || a.handle == kDgamma || a.handle == kDbeta;
  });
  cases::GivenInputs given(*subject().challenge);
  const auto spec = given.take(recorded.call);
  ASSERT_TRUE(spec);
  EXPECT_FALSE(spec->params.contains("null")) << "all outputs are wanted";
}

TEST(LayerNormBackwardRecorded, WhatIsNotLegalIsNoCase) {
  const Filled filled(subject(), "basic", 1);
  const auto refused = [&](auto change) {
    testing::RecordedCase recorded(filled);
    cases::GivenInputs given(*subject().challenge);
    EXPECT_TRUE(given.take(recorded.call));
    recorded.with<Params>(change);
    return !given.take(recorded.call);
  };
  EXPECT_TRUE(refused([](Params& p) { p.p.rows = -1; }));
  EXPECT_TRUE(refused([](Params& p) { p.p.D = std::int64_t{1} << 62; }));
  EXPECT_TRUE(refused([](Params& p) { p.p.eps = NAN; }));
  EXPECT_TRUE(refused([](Params& p) { p.mode = kInvalidForward; }));
  EXPECT_TRUE(refused([](Params& p) { p.mode = 1000; }));
}

TEST(LayerNormBackwardRecorded, InfinityIsNotPromisedAndNanInXIs) {
  const Filled filled(subject(), "basic", 1);
  std::vector<float> values(filled.buffer(kX).bytes / 4, 1.0f);
  for (const int handle : {kX, kGamma}) {
    for (const float odd : {NAN, INFINITY}) {
      testing::RecordedCase recorded(filled);
      values[0] = odd;
      auto& array = recorded.array(handle);
      array.bytes = std::as_bytes(std::span(values)).first(array.bytes.size());
      const bool taken = cases::GivenInputs(*subject().challenge).take(recorded.call).has_value();
      EXPECT_EQ(taken, handle == kX && std::isnan(odd)) << handle << " " << odd;
    }
  }
}

}  // namespace
}  // namespace assay::layer_norm_backward
