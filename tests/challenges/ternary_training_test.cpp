// The generator, the baselines, the examples, and outputs that must be rejected.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "challenges/ternary_training_case.h"

namespace assay::ternary_training {
namespace {

TEST(TernaryPlan, EveryHandleHasItsBuffer) {
  const std::map<std::int32_t, int> handles{
      {kQuantize, quantize::kHandles},    {kDequantize, dequantize::kHandles},
      {kLinear, linear::kHandles},        {kBlobBytes, blob_bytes::kHandles},
      {kTrain, train::kHandles},          {kLogits, logits::kHandles},
      {kPackDense, dense::kHandles},      {kUnpackDense, dense::kHandles},
      {kLinearBf16, linear::kHandles},    {kGenerate, generation::kHandles},
      {kTrainPart, train_part::kHandles}, {kStatistics, statistics::kHandles},
      {kDistill, distill::kHandles}};
  for (const CaseSpec& c : subject().spec.cases) {
    const CasePlan plan = subject().challenge->plan(c);
    const bool only_once = plan.entry == kTrainPart && !c.params.contains("interrupted_again_at");
    const int unused = only_once ? train_part::kHandles - train_part::kLater : 0;
    EXPECT_EQ(std::ssize(plan.buffers), handles.at(plan.entry) - unused) << c.name;
  }
}

TEST(TernaryPlan, TakesEpsilonFromTheCase) {
  EXPECT_EQ(shape_of(subject().case_named("logits")).call.config.eps, 1e-6f);
  EXPECT_EQ(shape_of(subject().case_named("norm_of_another_epsilon")).call.config.eps, 0.02f);
}

TEST(TernaryGenerator, DependsOnTheSeedAlone) {
  for (const char* name : {"quantize", "train", "logits", "linear", "pack_dense", "linear_bf16",
                           "generate_on", "counts"}) {
    const CaseSpec& c = subject().case_named(name);
    const CasePlan plan = subject().challenge->plan(c);
    std::vector<int> inputs;
    for (int handle = 0; handle < std::ssize(plan.buffers); ++handle) {
      const BufferPlan& buffer = plan.buffers[static_cast<std::size_t>(handle)];
      if (buffer.role == Role::input && buffer.bytes() > 0 && !buffer.null)
        inputs.push_back(handle);
    }
    testing::expect_inputs_follow_from_seed(subject(), name, inputs);
  }
}

// Plain blocks are the same with a mean in fp32 that was never rounded to binary16: only traps,
// which say so, fail an answer for that.
TEST(TernaryGenerator, PlainBlocksDoNotDependOnRounding) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    for (const char* name : {"quantize", "one_row", "group_rows"}) {
      const Drawn drawn(subject().case_named(name), seed);
      const std::span<const float> weights = drawn.buffer(quantize::kW).span<const float>();
      std::vector<std::uint8_t> blocks;
      for (std::size_t at = 0; at < weights.size(); at += 128) {
        float mean = 0;
        for (const float v : weights.subspan(at, 128)) mean += std::abs(v) / 128;
        const std::uint16_t bits = half_bits(mean);
        blocks.push_back(static_cast<std::uint8_t>(bits));
        blocks.push_back(static_cast<std::uint8_t>(bits >> 8));
        for (std::size_t j = 0; j < 128; ++j) {
          const float v = weights[at + j];
          const int code = std::abs(v) <= mean / 2 ? 1 : v < 0 ? 0 : 2;
          if (j % 4 == 0) blocks.push_back(0);
          blocks.back() = static_cast<std::uint8_t>(blocks.back() | code << (j % 4 * 2));
        }
      }
      EXPECT_EQ(drawn.reference().bytes, blocks) << name << " from seed " << seed;
    }
  }
}

// What the worker must never see.
TEST(TernaryGenerator, HidesTheHeldOutDocuments) {
  const CasePlan plan = subject().challenge->plan(subject().case_named("train"));
  for (const int hidden : {train::kHeldOut, train::kCost, train::kKind, train::kForeign}) {
    EXPECT_GE(plan.buffers[static_cast<std::size_t>(hidden)].phase, plan.phases);
  }
}

TEST(TernaryGenerator, HidesTheSecondPrompt) {
  const CasePlan plan = subject().challenge->plan(subject().case_named("generate_on"));
  EXPECT_EQ(plan.phases, 2);
  EXPECT_EQ(plan.buffers[generation::kMoreTokens].phase, 1);
}

// A layer in which some rows are judged one by one, with right outputs.
class LargeLayer : public Drawn {
 public:
  LargeLayer() : Drawn(small(), 5) {
    using namespace linear;
    const std::int64_t M = 96, N = 128, K = 256;
    Vector w;
    for (std::size_t at = 0; at < buffer(kBlocks).bytes; at += 34) {
      for (const double v : decode(buffer(kBlocks).as<std::uint8_t>() + at)) w.push_back(v);
    }
    const float *x = buffer(kX).as<float>(), *dy = buffer(kDy).as<float>();
    multiply(kY, M, N, K, [&](auto m, auto n, auto k) { return x[m * K + k] * w[n * K + k]; });
    multiply(kDx, M, K, N, [&](auto m, auto k, auto n) { return dy[m * N + n] * w[n * K + k]; });
    multiply(kDw, N, K, M, [&](auto n, auto k, auto m) {
      return static_cast<double>(dy[m * N + n]) * x[m * K + k];
    });
  }

 private:
  static CaseSpec small() {
    CaseSpec c = subject().case_named("time_linear");
    c.params.merge_patch({{"M", 96}, {"rows", 128}, {"cols", 256}, {"judged_rows", 8}});
    return c;
  }
  template <class Term>
  void multiply(int to, std::int64_t rows, std::int64_t columns, std::int64_t terms, Term term) {
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (std::int64_t t = 0; t < terms; ++t)
          sum += term(static_cast<std::size_t>(i), static_cast<std::size_t>(j),
                      static_cast<std::size_t>(t));
        buffer(to).as<float>()[i * columns + j] = static_cast<float>(sum);
      }
    }
  }
};

TEST(TernaryLargeLayer, ASingleWrongElementIsFoundWhereverItIs) {
  const LargeLayer layer;
  ASSERT_TRUE(layer.check().pass) << layer.check().detail;
  Random random(3);
  for (int i = 0; i < 60; ++i) {
    const auto out = layer.buffer(linear::kY + i % 3).span<float>();
    float& element = out[static_cast<std::size_t>(random.below(std::ssize(out)))];
    const float right = element;
    element = right + (i % 2 == 0 ? 0.3f : -0.3f);  // results are about 16
    EXPECT_FALSE(layer.check().pass) << i;
    element = right;
  }
}

TEST(TernaryLargeLayer, WrongRowsThatCancelAreFound) {
  const LargeLayer layer;
  const auto y = layer.buffer(linear::kY).span<float>();
  for (std::size_t row = 0; row < 96; row += 13) {
    std::swap(y[row * 128 + 5], y[row * 128 + 77]);
    EXPECT_FALSE(layer.check().pass) << row;
    std::swap(y[row * 128 + 5], y[row * 128 + 77]);
  }
  EXPECT_TRUE(layer.check().pass);
}

// A plain running sum in fp32 stays far from the bound.
TEST(TernaryLargeLayer, PlainSumsPass) {
  const LargeLayer layer;
  const auto dw = layer.buffer(linear::kDw).span<float>();
  for (std::size_t n = 0; n < 128; ++n) {
    for (std::size_t k = 0; k < 256; ++k) {
      float sum = 0;
      for (std::size_t m = 0; m < 96; ++m)
        sum += layer.buffer(linear::kDy).as<float>()[m * 128 + n] *
               layer.buffer(linear::kX).as<float>()[m * 256 + k];
      dw[n * 256 + k] = sum;
    }
  }
  EXPECT_TRUE(layer.check().pass) << layer.check().detail;
}

// The worker's view does not reveal which rows are judged one by one.
TEST(TernaryLargeLayer, TheSecretAloneChoosesTheRows) {
  const LargeLayer layer;
  EXPECT_GE(layer.plan().buffers[linear::kSecret].phase, layer.plan().phases);
  const auto rows = [&] {
    std::vector<std::int64_t> chosen;
    const auto reference = make_reference(layer.spec(), layer.buffers());
    for (const Row& row : static_cast<const TernReference&>(*reference).y)
      chosen.push_back(row.index);
    return chosen;
  };
  const std::vector<std::int64_t> before = rows();
  EXPECT_EQ(rows(), before);
  layer.buffer(linear::kX).as<float>()[0] += 1;
  EXPECT_EQ(rows(), before);
  *layer.buffer(linear::kSecret).as<std::uint64_t>() += 1;
  EXPECT_NE(rows(), before);
}

// The documents that judge a model follow from the judging seed alone; the language follows from
// the inputs' seed.
TEST(TernaryGenerator, HeldOutDocumentsDoNotFollowFromTheInputs) {
  const Drawn drawn(subject().case_named("train"), 1);
  const auto draw = [&](std::uint64_t inputs, std::uint64_t judging) {
    generate(drawn.spec(), inputs, judging, drawn.buffers());
  };
  draw(1, 2);
  const std::string first = drawn.bytes(train::kHeldOut), seen = drawn.bytes(train::kDocs);
  draw(1, 3);
  EXPECT_EQ(drawn.bytes(train::kDocs), seen);
  EXPECT_NE(drawn.bytes(train::kHeldOut), first);
}

TEST(TernaryTimedTraining, AsksForWhatCountsDoNotTell) {
  const CaseSpec& c = subject().case_named("time_train");
  for (const char* kind : {"words", "copy", "markers"}) {
    EXPECT_GE(c.params.at("least_closure").at(kind).get<double>(), 0.4) << kind;
  }
  // Looking at a document twice costs time.
  EXPECT_EQ(shape_of(c).call.n_docs * shape_of(c).call.config.T, c.params.at("max_tokens"));
}

TEST(TernaryChecker, RejectsUntouchedZeroAndNanOutputs) {
  for (const char* name :
       {"quantize", "dequantize", "linear", "logits", "train", "blob_norms", "pack_dense",
        "unpack_dense", "linear_bf16", "generate", "resumed", "counts", "distill"}) {
    Drawn drawn(subject().case_named(name), 3);
    EXPECT_FALSE(drawn.check().pass) << name;
    drawn.overwrite_outputs(0xff);
    EXPECT_FALSE(drawn.check().pass) << name;
    if (std::string(name) == "blob_norms") continue;  // zeros are a legal model
    drawn.overwrite_outputs(0);
    EXPECT_FALSE(drawn.check().pass) << name;
  }
}

TEST(TernaryExamples, CoverEveryTrap) { testing::expect_traps_covered(subject()); }

class TernaryBaseline : public ::testing::TestWithParam<const char*> {};

// Long cases run alone in a graded run.
TEST_P(TernaryBaseline, PassesEveryUntimedCase) {
  testing::DirectRunner runner(subject().name,
                               testing::compile(subject().file(GetParam()), subject().name));
  for (const CaseSpec& c : subject().spec.cases) {
    if (c.group == CaseGroup::timed || c.exclusive) continue;
    const bool cheap = shape_of(c).entry != kTrain;
    for (std::uint64_t seed = 1; seed <= (cheap ? 3 : 1); ++seed) {
      const CaseResult result = runner.run(c, seed);
      EXPECT_EQ(result.verdict, Verdict::ok) << c.name << " seed " << seed << ": " << result.detail;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, TernaryBaseline,
                         ::testing::Values("baselines/naive.cpp", "baselines/par.cpp"));

}  // namespace
}  // namespace assay::ternary_training
