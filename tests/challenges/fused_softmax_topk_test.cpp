// The reference against a witness that shares no code with it (a stable sort of the whole row and a
// softmax in long double), the baselines, the examples, and outputs that must be rejected.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string_view>

#include "assay/dtype.h"
#include "challenges/challenge_fixture.h"
#include "challenges/recorded_case.h"
#include "trusted.h"

namespace assay::fused_softmax_topk {
namespace {

using testing::ChallengeUnderTest;
using testing::Filled;

constexpr float kInf = std::numeric_limits<float>::infinity();

const ChallengeUnderTest& subject() {
  static const ChallengeUnderTest loaded("fused_softmax_topk");
  return loaded;
}

// --- the witness ---------------------------------------------------------------------------------

struct Witness {
  std::vector<std::int32_t> idx;
  long double lse = 0;
  bool poisoned = false;
};

Witness witness(const std::vector<float>& x, std::int32_t K, float temperature) {
  Witness w;
  w.idx.assign(static_cast<std::size_t>(K), -1);
  for (const float v : x) w.poisoned |= v != v || v == kInf;
  if (w.poisoned) return w;
  std::vector<std::int32_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return x[a] > x[b]; });
  std::copy_n(order.begin(), std::min(order.size(), w.idx.size()), w.idx.begin());
  long double sum = 0;
  const long double top = x.empty() ? -kInf : x[order[0]];
  for (auto j = order.rbegin(); j != order.rend() && top > -kInf; ++j) {  // smallest terms first
    sum += std::exp((static_cast<long double>(x[*j]) - top) / temperature);
  }
  w.lse = top > -kInf ? top / temperature + std::log(sum) : -kInf;
  return w;
}

// Rows of few distinct values, with signed zeros and, now and then, -inf, NaN, +inf or nothing
// else.
std::vector<float> difficult_row(std::mt19937& random, std::size_t V) {
  const auto below = [&](unsigned n) { return random() % n; };
  const unsigned values = 1 + below(40), masked = below(3) == 0 ? 2 + below(8) : 0;
  std::vector<float> x(V);
  for (float& v : x) {
    v = (static_cast<float>(below(values)) - 8) * (below(2) != 0 ? 0.375f : -0.375f);
    if (masked != 0 && below(masked) != 0) v = -kInf;
  }
  const unsigned special = below(12);
  if (special == 0) std::fill(x.begin(), x.end(), -kInf);
  if (special == 1 && V > 0) x[below(static_cast<unsigned>(V))] = std::nanf("");
  if (special == 2 && V > 0) x[below(static_cast<unsigned>(V))] = kInf;
  return x;
}

void expect_same(const Witness& w, const TopKReference& reference) {
  const RowReference& row = reference.rows.at(0);
  ASSERT_EQ(row.poisoned, w.poisoned);
  ASSERT_EQ(reference.idx, w.idx);
  if (w.poisoned) return;
  if (std::isinf(w.lse)) {
    ASSERT_EQ(row.lse, -kInf);
  } else {
    ASSERT_NEAR(row.lse, static_cast<double>(w.lse), 1e-13 * (1 + std::abs(row.lse)));
  }
}

TEST(FusedSoftmaxTopK, ReferenceAgreesWithTheWitness) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 3000; ++trial) {
    Shape s;
    s.rows = 1;
    s.V = s.ld = random() % 300;
    s.K = static_cast<std::int32_t>(random() % 64);
    s.temperature = std::exp2(static_cast<float>(random() % 7) - 3.0f) * 1.1f;
    const std::vector<float> x = difficult_row(random, static_cast<std::size_t>(s.V));
    SCOPED_TRACE(trial);
    ASSERT_NO_FATAL_FAILURE(
        expect_same(witness(x, s.K, s.temperature), *make_reference(s, x.data())));
  }
}

TEST(FusedSoftmaxTopK, ReferenceReadsBf16) {
  std::mt19937 random(8);
  for (int trial = 0; trial < 300; ++trial) {
    Shape s;
    s.rows = 1;
    s.V = s.ld = 1 + random() % 300;
    s.K = 20;
    s.dtype = ASSAY_BF16;
    std::vector<float> x = difficult_row(random, static_cast<std::size_t>(s.V));
    std::vector<std::uint16_t> stored;
    for (float& v : x) {
      stored.push_back(float_to_bf16(v));
      v = bf16_to_float(stored.back());
    }
    SCOPED_TRACE(trial);
    ASSERT_NO_FATAL_FAILURE(expect_same(witness(x, s.K, 1), *make_reference(s, stored.data())));
  }
}

// --- the baselines and the examples --------------------------------------------------------------

TEST(FusedSoftmaxTopK, BaselinesPassEveryCaseThatIsNotTimed) {
  testing::expect_passes(subject(), "baselines/naive.cpp", 3);
  testing::expect_passes(subject(), "baselines/par.cpp", 3);
}

TEST(FusedSoftmaxTopK, EveryTrapIsInTheListOfAnExample) {
  testing::expect_traps_covered(subject());
}

// --- inputs and rejected outputs -----------------------------------------------------------------

TEST(FusedSoftmaxTopK, EveryBufferIsPlanned) {
  testing::expect_every_handle_planned(subject(), kHandles);
}

TEST(FusedSoftmaxTopK, InputsFollowFromTheSeed) {
  for (const char* name :
       {"basic", "ties_boundary", "masked_topk", "nan_row_between", "bf16_basic"}) {
    testing::expect_inputs_follow_from_seed(subject(), name, {kLogits});
  }
}

// Random values tie now and then, but only the cases about ties may depend on it.
TEST(FusedSoftmaxTopK, WinnersTieOnlyWhereTiesAreTheSubject) {
  for (const char* name : {"wide", "vocabulary_256", "v_tails_50257", "launch_one_row", "scratch",
                           "range_200", "shift_up", "ties_boundary"}) {
    const Shape s = shape_of(subject().case_named(name));
    int ties = 0;
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const Filled f(subject(), name, seed);
      for (std::int64_t r = 0; r < s.rows; ++r) {
        const float* row = f.buffer(kLogits).as<float>() + r * s.ld;
        std::vector<float> x(row, row + s.V);
        std::sort(x.begin(), x.end(), std::greater<>());
        x.resize(static_cast<std::size_t>(std::min<std::int64_t>(s.K + 1, s.V)));
        ties += std::adjacent_find(x.begin(), x.end()) != x.end();
      }
    }
    EXPECT_EQ(ties > 0, std::string_view(name) == "ties_boundary") << name;
  }
}

// The right answer, as floats.
void answer(Filled& f) {
  const auto& reference = f.reference_as<TopKReference>();
  const Shape s = shape_of(f.spec());
  for (std::int64_t i = 0; i < s.rows * s.K; ++i) {
    const auto r = static_cast<std::size_t>(i / s.K);
    const std::int32_t j = reference.idx[static_cast<std::size_t>(i)];
    const double x = f.buffer(kLogits).as<float>()[static_cast<std::int64_t>(r) * s.ld + j];
    f.buffer(kIdx).as<std::int32_t>()[i] = j;
    f.buffer(kProb).as<float>()[i] =
        static_cast<float>(std::exp(x / s.temperature - reference.rows[r].lse));
    f.buffer(kLse).as<float>()[r] = static_cast<float>(reference.rows[r].lse);
  }
}

// Three roundings of the size of the result, as in a kernel that works to the base 2 without fma.
TEST(FusedSoftmaxTopK, AnLseOfWhichEachStepIsRoundedPasses) {
  constexpr float kLog2E = 1.44269504f, kLn2 = 0.693147181f;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Filled f(subject(), "range_200", seed);
    answer(f);
    const Shape s = shape_of(f.spec());
    ASSERT_EQ(s.temperature, 1.0f);
    for (std::int64_t r = 0; r < s.rows; ++r) {
      const float* x = f.buffer(kLogits).as<float>() + r * s.ld;
      const float top = *std::max_element(x, x + s.V);
      double sum = 0;
      for (std::int64_t j = 0; j < s.V; ++j) sum += std::exp(static_cast<double>(x[j]) - top);
      const volatile float scaled = top * kLog2E;
      const volatile float both = scaled + std::log2(static_cast<float>(sum));
      f.buffer(kLse).as<float>()[r] = both * kLn2;
    }
    const CheckResult result = f.check();
    EXPECT_TRUE(result.pass) << "seed " << seed << ": " << result.detail;
  }
}

TEST(FusedSoftmaxTopK, TheRightAnswerPassesAndEachWrongOutputFails) {
  const auto with = [](auto spoil) {
    Filled f(subject(), "basic", 3);
    answer(f);
    spoil(f);
    return f.check();
  };
  EXPECT_TRUE(with([](Filled&) {}).pass);
  for (const int handle : {int{kIdx}, int{kProb}, int{kLse}}) {
    for (const int byte : {0x00, 0xff, 0x7f}) {
      const CheckResult result = with([&](Filled& f) { f.overwrite(handle, byte); });
      EXPECT_FALSE(result.pass) << "buffer " << handle << ", bytes " << byte;
      EXPECT_NE(result.detail, "");
    }
  }
  EXPECT_FALSE(with([](Filled& f) {
                 auto* idx = f.buffer(kIdx).as<std::int32_t>();
                 std::swap(idx[3], idx[4]);
               }).pass)
      << "order";
  EXPECT_FALSE(with([](Filled& f) { f.buffer(kIdx).as<std::int32_t>()[0] = 2000000000; }).pass);
  EXPECT_FALSE(with([](Filled& f) { f.buffer(kProb).as<float>()[9] *= 1.00001f; }).pass);
  EXPECT_FALSE(with([](Filled& f) { f.buffer(kLse).as<float>()[2] += 2e-5f; }).pass);
}

TEST(FusedSoftmaxTopK, UntouchedOutputsFailEveryCaseThatHasSome) {
  testing::expect_untouched_outputs_fail(subject(), {kIdx, kProb, kLse});
}

TEST(FusedSoftmaxTopK, RowsFarApartHoldWhatRowsSideBySideDo) {
  for (const char* name : {"rows_2_to_31_apart", "bf16_rows_2_to_31_apart"}) {
    const Filled far(subject(), name, 2);
    CaseSpec dense = subject().case_named(name);
    dense.params["pad"] = 3;
    const Filled side(subject(), dense, 2);
    const auto &a = far.reference_as<TopKReference>(), &b = side.reference_as<TopKReference>();
    EXPECT_EQ(a.idx, b.idx);
    ASSERT_EQ(a.rows.size(), 3u);
    for (std::size_t r = 0; r < 3; ++r) EXPECT_EQ(a.rows[r].lse, b.rows[r].lse);
    const processes::Layout layout = processes::make_layout(far.plan(), false);
    EXPECT_GT(layout.slots[kLogits].bytes, std::size_t{1} << 33);
    EXPECT_LT(layout.input_bytes, std::size_t{64} << 10);
  }
}

TEST(FusedSoftmaxTopK, PoisonedRowsAcceptNothingButNan) {
  Filled f(subject(), "nan_row_between", 2);
  const auto& rows = f.reference_as<TopKReference>().rows;
  for (const std::size_t r : {1, 3, 5}) EXPECT_TRUE(rows[r].poisoned) << r;
  for (const std::size_t r : {0, 2, 4}) EXPECT_FALSE(rows[r].poisoned) << r;
  f.overwrite(kProb, 0);
  f.overwrite(kLse, 0);
  EXPECT_FALSE(f.check().pass);
}

TEST(FusedSoftmaxTopKRecorded, EveryCaseComesBack) {
  EXPECT_THAT(testing::not_recorded(subject()), ::testing::IsEmpty());
}

// Forged numbers: none makes the harness compute or allocate without bounds.
TEST(FusedSoftmaxTopKRecorded, ArgumentsThatAreNotLegalOrTooLargeAreNoCase) {
  const Filled filled(subject(), "basic", 1);
  const auto refused = [&](auto change) {
    testing::RecordedCase recorded(filled);
    cases::GivenInputs given(*subject().challenge);
    EXPECT_TRUE(given.take(recorded.call));
    recorded.with<Params>(change);
    return !given.take(recorded.call);
  };
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  EXPECT_TRUE(refused([](Params& p) { p.p.rows = -1; }));
  EXPECT_TRUE(refused([](Params& p) { p.p.rows = kHuge; }));
  EXPECT_TRUE(refused([](Params& p) { p.p.V = kHuge, p.p.ld = kHuge; }));
  EXPECT_TRUE(refused([](Params& p) { p.p.ld = p.p.V - 1; }));
  EXPECT_TRUE(refused([](Params& p) { p.p.K = 1 << 30; }));
  EXPECT_TRUE(refused([](Params& p) { p.p.temperature = 0; }));
  EXPECT_TRUE(refused([](Params& p) { p.p.temperature = NAN; }));
  EXPECT_TRUE(refused([](Params& p) { p.p.dtype = 77; }));
  EXPECT_TRUE(refused([](Params& p) { p.p.size = 1; }));
  EXPECT_TRUE(refused([](Params& p) { --p.p.rows; })) << "the array is longer than that";
}

TEST(FusedSoftmaxTopKRecorded, AnArrayThatHasToBeThereMayNotBeNull) {
  const Filled filled(subject(), "basic", 1);
  for (const int handle : {kLogits, kIdx, kProb}) {
    testing::RecordedCase recorded(filled);
    recorded.array(handle) = {handle, true, {}};
    EXPECT_FALSE(cases::GivenInputs(*subject().challenge).take(recorded.call)) << handle;
  }
}

}  // namespace
}  // namespace assay::fused_softmax_topk
