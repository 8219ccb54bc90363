// The reference against full-matrix attention in long double that shares no code with it, against
// closed forms, the baselines, the examples, and outputs that must be rejected.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "challenges/challenge_fixture.h"
#include "challenges/recorded_attention.h"
#include "challenges/recorded_case.h"
#include "trusted.h"

namespace assay::flash_attention_fwd {
namespace {

using testing::ChallengeUnderTest;
using testing::Filled;

const ChallengeUnderTest& subject() {
  static const ChallengeUnderTest loaded("flash_attention_fwd");
  return loaded;
}

// --- the witness
// -----------------------------------------------------------------------------------

struct WitnessRow {
  std::vector<long double> o;
  long double lse = -HUGE_VALL;
};

long double value(const fa_params& p, const BufferView& view, std::int64_t at) {
  if (p.dtype == ASSAY_F32) return static_cast<long double>(view.as<float>()[at]);
  const std::uint16_t h = view.as<std::uint16_t>()[at];
  return static_cast<long double>(p.dtype == ASSAY_BF16 ? bf16_to_float(h) : f16_to_float(h));
}

// e4m3 by its definition: (-1)^s 2^(e - 7) (1 + f / 8), or 2^-6 f / 8 if e is 0; all ones are NaN.
long double e4m3_value(int x) {
  const int e = x / 8 % 16, f = x % 8;
  if (x % 128 == 127) return std::numeric_limits<long double>::quiet_NaN();
  const long double magnitude = e == 0 ? f / 512.0L : std::pow(2.0L, e - 7) * (8 + f) / 8;
  return x < 128 ? magnitude : -magnitude;
}

long double e4m3(std::uint8_t x) {
  static const std::vector<long double> table = [] {
    std::vector<long double> values;
    for (int i = 0; i < 256; ++i) values.push_back(e4m3_value(i));
    return values;
  }();
  return table[x];
}

// The definition, one query at a time: all scores first, then their exponentials, then the mean of
// values.
WitnessRow witness(const CaseSpec& c, BufferViews buffers, std::int64_t b, std::int64_t h,
                   std::int64_t i) {
  const attention::Problem problem = attention::problem_of(c);
  const fa_params& p = problem.p;
  std::int64_t Nq = p.Nq,
               L = buffers[kKvLen].bytes != 0 ? buffers[kKvLen].as<std::int64_t>()[b] : p.Nk;
  const std::int64_t kv = h * p.Hkv / p.Hq;
  // Elements before the item's first row.
  std::int64_t q0 = b * p.sq.b + h * p.sq.h, k0 = b * p.sk.b + kv * p.sk.h,
               v0 = b * p.sv.b + kv * p.sv.h;
  if (buffers[kCuQ].bytes != 0) {
    const std::int64_t *cu_q = buffers[kCuQ].as<std::int64_t>(),
                       *cu_k = buffers[kCuK].as<std::int64_t>();
    Nq = cu_q[b + 1] - cu_q[b];
    L = cu_k[b + 1] - cu_k[b];
    q0 += cu_q[b] * p.sq.n;
    k0 += cu_k[b] * p.sk.n;
    v0 += cu_k[b] * p.sv.n;
  }
  const auto element = [&](int handle, std::int64_t at) {
    const BufferView& view = buffers[static_cast<std::size_t>(handle)];
    if (buffers[kScales].bytes == 0) return value(p, view, at);
    return e4m3(view.as<std::uint8_t>()[at]) *
           static_cast<long double>(buffers[kScales].as<float>()[handle - kQ]);
  };
  const auto ones = c.params.value("bias", std::vector<std::int64_t>{});
  const auto bias = [&](std::int64_t j) {
    const std::int64_t sizes[] = {p.B, p.Hq, p.Nq, p.Nk}, at[] = {b, h, i, j};
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < 4; ++d) offset = ones[d] == 1 ? offset : offset * sizes[d] + at[d];
    return static_cast<long double>(buffers[kBias].as<float>()[offset]);
  };
  std::vector<long double> s;
  std::vector<std::int64_t> keys;
  for (std::int64_t j = 0; j < L; ++j) {
    const std::int64_t ahead = j - (i + L - Nq);
    if ((p.causal != 0 && ahead > 0) || (p.window > 0 && ahead <= -p.window)) continue;
    long double x = 0;
    for (std::int64_t d = 0; d < p.D; ++d) {
      x += element(kQ, q0 + i * p.sq.n + d) * element(kK, k0 + j * p.sk.n + d);
    }
    x *= p.scale;
    if (problem.softcap > 0) x = problem.softcap * std::tanh(x / problem.softcap);
    if (problem.alibi)
      x -= buffers[kAlibi].as<float>()[h] * static_cast<long double>(std::abs(ahead));
    if (buffers[kBias].bytes != 0) x += bias(j);
    s.push_back(x);
    keys.push_back(j);
  }
  WitnessRow row;
  row.o.assign(static_cast<std::size_t>(p.Dv), 0);
  std::vector<long double> all = s;
  if (problem.sink) all.push_back(buffers[kSink].as<float>()[h]);
  if (all.empty()) return row;
  const long double top = *std::max_element(all.begin(), all.end());
  long double sum = 0;
  for (const long double x : all) sum += std::exp(x - top);
  row.lse = top + std::log(sum);
  for (std::size_t n = 0; n < s.size(); ++n) {
    const long double weight = std::exp(s[n] - row.lse);
    for (std::int64_t d = 0; d < p.Dv; ++d) {
      row.o[static_cast<std::size_t>(d)] += weight * element(kV, v0 + keys[n] * p.sv.n + d);
    }
  }
  return row;
}

void expect_witnessed(const char* name) {
  SCOPED_TRACE(name);
  const Filled f(subject(), name, 11);
  const auto& reference = f.reference_as<ForwardReference>();
  ASSERT_FALSE(reference.tiles.empty());
  for (const TileReference& t : reference.tiles) {
    for (std::int64_t r = 0; r < t.rows; ++r) {
      const WitnessRow w = witness(f.spec(), f.buffers(), t.b, t.h, t.first + r);
      const double lse = t.lse[static_cast<std::size_t>(r)];
      if (std::isinf(w.lse)) {
        ASSERT_EQ(lse, static_cast<double>(w.lse));
      } else {
        ASSERT_NEAR(lse, static_cast<double>(w.lse), 1e-12 * (1 + std::abs(lse)));
      }
      for (std::int64_t d = 0; d < t.o.cols(); ++d) {
        ASSERT_NEAR(t.o(r, d), static_cast<double>(w.o[static_cast<std::size_t>(d)]),
                    1e-12 * (1 + t.scale(r, d)))
            << "head " << t.h << " row " << t.first + r;
      }
    }
  }
}

TEST(FlashAttentionForward, ReferenceAgreesWithTheWitness) {
  for (const char* name : {"causal_64",
                           "noncausal",
                           "gqa",
                           "nq_gt_nk",
                           "nq_lt_nk",
                           "strided_bshd",
                           "padded_rows",
                           "scale_negative",
                           "rising_max",
                           "neg_init",
                           "one_hot",
                           "bf16_gqa",
                           "f16_causal",
                           "value_dim_small",
                           "window_1",
                           "window_not_causal",
                           "softcap",
                           "alibi",
                           "sink",
                           "key_lengths",
                           "key_lengths_not_causal",
                           "varlen_causal",
                           "varlen_cross",
                           "varlen_not_causal",
                           "bias_full",
                           "bias_of_heads",
                           "bias_of_keys",
                           "bias_of_queries",
                           "fp8_causal",
                           "fp8_not_causal"}) {
    ASSERT_NO_FATAL_FAILURE(expect_witnessed(name));
  }
}

// With q = 0 the output is the mean of the visible values, and lse the logarithm of their number.
TEST(FlashAttentionForward, ZeroQueriesGiveMeans) {
  const Filled f(subject(), "uniform_long", 3);
  const auto& reference = f.reference_as<ForwardReference>();
  const fa_params p = attention::problem_of(f.spec()).p;
  for (const TileReference& t : reference.tiles) {
    for (std::int64_t d = 0; d < p.Dv; ++d) {
      double mean = 0;
      for (std::int64_t j = 0; j < p.Nk; ++j)
        mean += static_cast<double>(f.buffer(kV).as<float>()[j * p.Dv + d]);
      EXPECT_NEAR(t.o(0, d), mean / static_cast<double>(p.Nk), 1e-13);
    }
    EXPECT_NEAR(t.lse[0], std::log(static_cast<double>(p.Nk)), 1e-13);
  }
}

// Sequences do not affect each other: the query at position 33 is NaN, and the keys from 60 on are
// seen by later queries of their sequence.
TEST(FlashAttentionForward, NanStaysInItsSequence) {
  const Filled f(subject(), "varlen_nan", 5);
  const std::int64_t offset[] = {0, 30, 70};
  std::int64_t rows = 0;
  for (const TileReference& t : f.reference_as<ForwardReference>().tiles) {
    for (std::int64_t r = 0; r < t.rows; ++r, ++rows) {
      const std::int64_t i = t.first + r;
      // Query i of sequence 1 sees its keys up to i + 10; the one with NaN is key 30.
      const bool spoiled = t.b == 1 && (i + offset[t.b] == 33 || i >= 20);
      EXPECT_EQ(std::isnan(t.lse[static_cast<std::size_t>(r)]), spoiled) << t.b << " " << i;
    }
  }
  EXPECT_EQ(rows, 2 * 90);
}

// The code of every value decodes to that value, halfway cases go to the even code, and values that
// are too large saturate.
TEST(FlashAttentionForward, E4m3IsTheFormat) {
  for (int x = 0; x < 256; ++x) {
    const auto byte = static_cast<std::uint8_t>(x);
    if (x % 128 == 127) {
      EXPECT_TRUE(std::isnan(attention::e4m3_to_float(byte)));
      continue;
    }
    EXPECT_EQ(attention::e4m3_to_float(byte), static_cast<float>(e4m3(byte))) << x;
    EXPECT_EQ(attention::float_to_e4m3(static_cast<float>(e4m3(byte))), byte) << x;
    if (x % 128 == 126) continue;
    const auto next = static_cast<std::uint8_t>(x + 1), even = x % 2 == 0 ? byte : next;
    const auto middle = static_cast<float>((e4m3(byte) + e4m3(next)) / 2);
    EXPECT_EQ(attention::float_to_e4m3(middle), even) << x;
    EXPECT_EQ(attention::float_to_e4m3(std::nextafter(middle, static_cast<float>(e4m3(next)))),
              next)
        << x;
  }
  EXPECT_EQ(attention::float_to_e4m3(1e9f), 0x7e);
  EXPECT_EQ(attention::float_to_e4m3(-450), 0xfe);
  EXPECT_EQ(attention::float_to_e4m3(NAN) & 0x7f, 0x7f);
}

// Weights rounded to e4m3, as fp8 tensor cores read them, pass; a scale of v that is off by 15 %
// does not.
TEST(FlashAttentionForward, Fp8AllowsRoundedWeightsAndNoMore) {
  for (const char* name : {"fp8_causal", "fp8_not_causal"}) {
    for (const double off : {1.0, 1.15}) {
      Filled f(subject(), name, 6);
      const fa_params p = attention::problem_of(f.spec()).p;
      for (const TileReference& t : f.reference_as<ForwardReference>().tiles) {
        for (std::int64_t r = 0; r < t.rows; ++r) {
          const std::int64_t i = t.first + r, kv = t.h / (p.Hq / p.Hkv);
          f.buffer(kLse).as<float>()[(t.b * p.Hq + t.h) * p.Nq + i] =
              static_cast<float>(t.lse[static_cast<std::size_t>(r)]);
          // Relative to the row's lse, not to its maximum, so rounding differs from the
          // reference's.
          std::vector<float> weights;
          for (std::int64_t j = 0; j < t.keys[static_cast<std::size_t>(r)]; ++j) {
            long double s = 0;
            for (std::int64_t d = 0; d < p.D; ++d) {
              s +=
                  e4m3(f.buffer(kQ)
                           .as<std::uint8_t>()[t.b * p.sq.b + t.h * p.sq.h + i * p.sq.n + d]) *
                  e4m3(
                      f.buffer(kK).as<std::uint8_t>()[t.b * p.sk.b + kv * p.sk.h + j * p.sk.n + d]);
            }
            const float* scales = f.buffer(kScales).as<float>();
            s *= static_cast<long double>(p.scale) * scales[0] * scales[1];
            const auto w = static_cast<float>(std::exp(s - t.lse[static_cast<std::size_t>(r)]));
            weights.push_back(attention::e4m3_to_float(attention::float_to_e4m3(w * 256)) / 256);
          }
          for (std::int64_t d = 0; d < p.Dv; ++d) {
            double o = 0;
            for (std::size_t j = 0; j < weights.size(); ++j) {
              const std::int64_t at =
                  t.b * p.sv.b + kv * p.sv.h + static_cast<std::int64_t>(j) * p.sv.n + d;
              o += static_cast<double>(weights[j]) *
                   static_cast<double>(e4m3(f.buffer(kV).as<std::uint8_t>()[at]));
            }
            const auto x =
                static_cast<float>(o * static_cast<double>(f.buffer(kScales).as<float>()[2]) * off);
            const std::int64_t at = t.b * p.so.b + t.h * p.so.h + i * p.so.n + d;
            if (p.dtype == ASSAY_BF16) {
              f.buffer(kO).as<std::uint16_t>()[at] = float_to_bf16(x);
            } else {
              f.buffer(kO).as<float>()[at] = x;
            }
          }
        }
      }
      EXPECT_EQ(f.check().pass, off == 1.0) << name << " " << f.check().detail;
    }
  }
}

// Masked values have no effect; visible ones spoil their row.
TEST(FlashAttentionForward, NanStaysWithTheRowsThatSeeIt) {
  const Filled f(subject(), "causal_future_poison", 5);
  const auto& tiles = f.reference_as<ForwardReference>().tiles;
  ASSERT_EQ(tiles.size(), 2u * 150u) << "one for each head and query";
  for (const TileReference& t : tiles) {
    ASSERT_EQ(t.rows, 1);
    EXPECT_EQ(std::isnan(t.lse[0]), t.first >= 90) << t.first;
    EXPECT_EQ(std::isnan(t.o(0, 0)), t.first >= 90) << t.first;
  }
}

// Timed inputs are judged in part. A buffer that the submission never sees determines which part.
TEST(FlashAttentionForward, SampledTilesFollowFromTheSecret) {
  const auto tiles = [](std::uint64_t seed) {
    const Filled f(subject(), "memory_4096", seed);
    std::vector<std::int64_t> first;
    for (const TileReference& t : f.reference_as<ForwardReference>().tiles)
      first.push_back(t.first);
    return first;
  };
  EXPECT_EQ(tiles(1), tiles(1));
  EXPECT_NE(tiles(1), tiles(2));
  EXPECT_GT(tiles(1).size(), 1u);
  const Filled f(subject(), "memory_4096", 1);
  EXPECT_GE(f.plan().buffers[kSecret].phase, f.plan().phases) << "revealed to the worker";
}

// --- the baselines, the examples, rejected outputs
// -------------------------------------------------

TEST(FlashAttentionForward, BaselinesPassEveryCaseThatIsNotTimed) {
  testing::expect_passes(subject(), "baselines/naive.cpp", 2);
  testing::expect_passes(subject(), "baselines/par.cpp", 3, {"fp8"});
}

TEST(FlashAttentionForward, EveryTrapIsInTheListOfAnExample) {
  testing::expect_traps_covered(subject());
}

TEST(FlashAttentionForward, InputsFollowFromTheSeed) {
  for (const char* name : {"causal_64", "rising_max", "one_hot", "bf16_causal", "alibi"}) {
    testing::expect_inputs_follow_from_seed(subject(), name, {kQ});
  }
}

TEST(FlashAttentionForward, EveryBufferIsPlanned) {
  testing::expect_every_handle_planned(subject(), kHandles);
}

// The reference's own values, as floats, in the buffers of a case with contiguous fp32 output.
void answer(Filled& f) {
  const fa_params p = attention::problem_of(f.spec()).p;
  for (const TileReference& t : f.reference_as<ForwardReference>().tiles) {
    for (std::int64_t r = 0; r < t.rows; ++r) {
      const std::int64_t row = (t.b * p.Hq + t.h) * p.Nq + t.first + r;
      for (std::int64_t d = 0; d < p.Dv; ++d)
        f.buffer(kO).as<float>()[row * p.Dv + d] = static_cast<float>(t.o(r, d));
      f.buffer(kLse).as<float>()[row] = static_cast<float>(t.lse[static_cast<std::size_t>(r)]);
    }
  }
}

TEST(FlashAttentionForward, TheRightAnswerPassesAndEachWrongOutputFails) {
  const auto with = [](auto spoil) {
    Filled f(subject(), "causal_64", 3);
    answer(f);
    spoil(f);
    return f.check();
  };
  EXPECT_TRUE(with([](Filled&) {}).pass);
  for (const int handle : {int{kO}, int{kLse}}) {
    for (const int byte : {0x00, 0xff, 0x7f}) {
      const CheckResult result = with([&](Filled& f) { f.overwrite(handle, byte); });
      EXPECT_FALSE(result.pass) << "buffer " << handle << ", bytes " << byte;
      EXPECT_NE(result.detail, "");
    }
  }
  EXPECT_FALSE(with([](Filled& f) { f.buffer(kO).as<float>()[77] += 1e-4f; }).pass);
  EXPECT_FALSE(with([](Filled& f) { f.buffer(kLse).as<float>()[9] += 2e-5f; }).pass);
}

// Only the last element of the last key's value is NaN, and only the last query of a head sees it.
TEST(FlashAttentionForward, ANanInAValueMaySpoilTheWholeRow) {
  const auto with = [](std::int64_t row, std::int64_t d, float value) {
    Filled f(subject(), "nan_in_the_last_of_masked_values", 3);
    answer(f);
    f.buffer(kO).as<float>()[row * 64 + d] = value;
    return f.check().pass;
  };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(with(59, 63, kNan));
  EXPECT_TRUE(with(59, 0, kNan));
  EXPECT_FALSE(with(59, 63, 0.5f)) << "the NaN got lost";
  EXPECT_FALSE(with(59, 0, 9)) << "neither right nor NaN";
  EXPECT_FALSE(with(58, 0, kNan)) << "this row does not see it";
}

TEST(FlashAttentionForward, GapsBetweenRowsAreNotTheSubmissions) {
  Filled f(subject(), "padded_rows", 4);
  const attention::Problem problem = attention::problem_of(f.spec());
  for (const TileReference& t : f.reference_as<ForwardReference>().tiles) {
    for (std::int64_t r = 0; r < t.rows; ++r) {
      const std::int64_t at =
          t.b * problem.p.so.b + t.h * problem.p.so.h + (t.first + r) * problem.p.so.n;
      for (std::int64_t d = 0; d < problem.p.Dv; ++d)
        f.buffer(kO).as<float>()[at + d] = static_cast<float>(t.o(r, d));
      f.buffer(kLse).as<float>()[(t.b * problem.p.Hq + t.h) * problem.p.Nq + t.first + r] =
          static_cast<float>(t.lse[static_cast<std::size_t>(r)]);
    }
  }
  EXPECT_TRUE(f.check().pass);
  f.buffer(kO).as<float>()[problem.p.Dv + 1] = 0;
  EXPECT_FALSE(f.check().pass);
}

// The roundings of a running sum of equal weights all go the same way.
TEST(FlashAttentionForward, APlainSumOfEqualWeightsIsRight) {
  CaseSpec equal = subject().case_named("sink");
  equal.params = {{"B", 1}, {"Hq", 8},      {"Nq", 1},
                  {"D", 8}, {"sink", true}, {"data", {{"kind", "zero_q"}}}};
  testing::DirectRunner runner(
      subject().name, testing::compile(subject().file("baselines/naive.cpp"), subject().name));
  for (const int keys : {325, 2048}) {
    equal.params["Nk"] = keys;
    for (std::uint64_t seed = 1; seed <= 20; ++seed)
      EXPECT_EQ(runner.run(equal, seed).verdict, Verdict::ok) << keys << " keys, seed " << seed;
  }
}

TEST(FlashAttentionForward, RowsFarApartHoldWhatRowsSideBySideDo) {
  CaseSpec dense = subject().case_named("far_items");
  dense.params["layout"] = "bhnd";
  const Filled expected(subject(), dense, 5);
  const auto& tiles = expected.reference_as<ForwardReference>().tiles;
  ASSERT_EQ(tiles.size(), 6u);
  for (const char* layout : {"far_items", "far_heads", "far_rows"}) {
    CaseSpec far = dense;
    far.params["layout"] = layout;
    Filled f(subject(), far, 5);
    EXPECT_GT(f.buffer(kQ).bytes, std::size_t{1} << 33) << layout;
    const attention::Problem problem = attention::problem_of(far);
    for (const TileReference& t : f.reference_as<ForwardReference>().tiles) {
      EXPECT_EQ(t.o, tiles[static_cast<std::size_t>(t.b * problem.p.Hq + t.h)].o) << layout;
      for (std::int64_t r = 0; r < t.rows; ++r) {
        const std::int64_t at = problem.query_at(problem.p.so, t.b, t.h, t.first + r);
        for (std::int64_t d = 0; d < problem.p.Dv; ++d)
          f.buffer(kO).as<float>()[at + d] = static_cast<float>(t.o(r, d));
        f.buffer(kLse).as<float>()[problem.lse_at(t.b, t.h, t.first + r)] =
            static_cast<float>(t.lse[static_cast<std::size_t>(r)]);
      }
    }
    EXPECT_TRUE(f.check().pass) << layout;
    f.buffer(kO).as<float>()[problem.query_at(problem.p.so, 2, 1, 2)] += 1;
    EXPECT_FALSE(f.check().pass) << layout;
  }
}

TEST(FlashAttentionForward, UntouchedOutputsFailEveryCaseThatHasSome) {
  testing::expect_untouched_outputs_fail(subject(), {kO, kLse});
}

// Except those with NaN somewhere, or without batch, heads or width.
TEST(FlashAttentionForwardRecorded, TheCasesComeBack) {
  EXPECT_THAT(testing::not_recorded(subject(), {kSecret}),
              ::testing::UnorderedElementsAre(
                  "batch0", "bf16_nan", "bias_full", "causal_future_poison", "f16_nan",
                  "fp8_poison", "head_dim_0", "hq_0", "nan_in_the_last_of_masked_values",
                  "nan_query", "no_heads", "varlen_cross", "varlen_nan", "window_poison"));
}

TEST(FlashAttentionForwardRecorded, ArgumentsThatAreNotLegalOrTooLargeAreNoCase) {
  testing::expect_forged_arguments_refused<Params>(subject());
}

TEST(FlashAttentionForwardRecorded, LengthsThatDoNotAscendAreNoCase) {
  testing::expect_only_ascending_lengths(subject(), kCuK);
}

}  // namespace
}  // namespace assay::flash_attention_fwd
