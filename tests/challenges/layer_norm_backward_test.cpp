// The reference against central differences of a forward pass written here, the baselines, the examples,
// and outputs that must be rejected.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <sstream>

#include "layer_norm.h"
#include "run/challenge_registry.h"
#include "run/layout.h"
#include "support/direct_runner.h"
#include "util/files.h"

namespace assay::layer_norm_backward {
namespace {

namespace fs = std::filesystem;
using Vector = std::vector<double>;

const std::string kName = "layer_norm_backward";

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
    const CaseSpec& c = case_named(name);
    const Shape s = shape_of(c);
    Drawn drawn(c, 11);
    const auto& g = static_cast<const Gradients&>(*drawn.reference);
    const auto wide = [&](int handle) {
      const auto span = drawn.buffers[static_cast<std::size_t>(handle)].span<float>();
      return Vector(span.begin(), span.end());
    };
    Vector x = wide(kX), gamma = wide(kGamma), beta = wide(kBeta), dy = wide(kDy);
    const auto D = static_cast<std::size_t>(s.D);
    const auto f = [&] { return loss(x, gamma, beta, dy, D, s.eps); };
    for (std::size_t j = 0; j < std::min<std::size_t>(D, 8); ++j) {
      EXPECT_NEAR(g.dgamma[j], central_difference(gamma, j, f), 1e-6 * g.dgamma_scale[j])
          << name << " dgamma " << j;
      EXPECT_NEAR(g.dbeta[j], central_difference(beta, j, f), 1e-6 * g.dbeta_scale[j])
          << name << " dbeta " << j;
    }
    for (const std::int64_t r : {std::int64_t{0}, s.rows - 1}) {
      RowResult row(s.D);
      dx_row(s, g, drawn.buffers, r, row);
      for (std::size_t j = 0; j < std::min<std::size_t>(D, 8); ++j) {
        const double numeric = central_difference(x, static_cast<std::size_t>(r) * D + j, f);
        EXPECT_NEAR(row.expected[j], numeric, 2e-6 * (1 + row.scale[j]))
            << name << " dx " << r << "," << j;
      }
    }
  }
}

TEST(LayerNormGenerator, DependsOnTheSeedAlone) {
  const CaseSpec& c = case_named("basic");
  const Drawn a(c, 5), b(c, 5), other(c, 6);
  for (const int handle : {kX, kGamma, kDy}) {
    const auto i = static_cast<std::size_t>(handle);
    EXPECT_EQ(std::memcmp(a.buffers[i].data, b.buffers[i].data, a.buffers[i].bytes), 0);
    EXPECT_NE(std::memcmp(a.buffers[i].data, other.buffers[i].data, a.buffers[i].bytes), 0);
  }
}

TEST(LayerNormChecker, RejectsUntouchedZeroAndNanOutputs) {
  const CaseSpec& c = case_named("basic");
  Drawn drawn(c, 3);
  const auto passes = [&] {
    return challenge().check(c, drawn.plan, *drawn.reference, drawn.buffers, nullptr).pass;
  };
  run::poison(drawn.plan, drawn.layout, drawn.output.data(), 9);
  EXPECT_FALSE(passes());
  std::fill(drawn.output.begin(), drawn.output.end(), std::byte{0});
  EXPECT_FALSE(passes());
  std::fill(drawn.output.begin(), drawn.output.end(), std::byte{0xff});
  EXPECT_FALSE(passes());
}

class LayerNormBaseline : public ::testing::TestWithParam<const char*> {};

TEST_P(LayerNormBaseline, PassesEveryUntimedCase) {
  testing::DirectRunner runner(kName, testing::compile(file(GetParam()), kName));
  for (const std::uint64_t seed : {1, 2, 3}) {
    for (const CaseSpec& c : spec().cases) {
      if (c.group == CaseGroup::timed) continue;
      const CaseResult result = runner.run(c, seed);
      const bool good = result.verdict == Verdict::ok || result.verdict == Verdict::unsupported;
      EXPECT_TRUE(good) << c.name << " seed " << seed << ": " << result.detail;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, LayerNormBaseline, ::testing::Values("naive.cpp", "par.cpp"));

}  // namespace
}  // namespace assay::layer_norm_backward
