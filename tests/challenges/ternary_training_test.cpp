// The corpus's floor against a predictor that reads only the prefix, the generator, the baselines,
// the examples, and outputs that must be rejected.
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

// Counts what follows what in the state that the visible prefix shows (a mark, the place in a
// block, the open brackets, the class of the last word) over many documents. If the costs that the
// generator logs are those of the true distribution, the predictor of counts comes to the same
// mean, kind by kind.
TEST(TernaryCorpus, FloorIsTheEntropyGivenThePrefix) {
  const nlohmann::json corpus = {{"classes", 3}, {"words", 4},    {"names", 5},
                                 {"defined", 2}, {"brackets", 2}, {"depth", 2}};
  tt_config c{};
  c.V = 32;
  const auto language = make_language(corpus, c, 5);
  constexpr int kOpen = 3, kClose = 5, kWord0 = 7, kName0 = 19;
  std::map<std::string, std::map<int, double>> next;
  struct Seen {
    std::string state;
    int token, kind;
    double cost;
  };
  std::vector<Seen> seen;
  Random random(9);
  std::vector<std::uint16_t> tokens(64);
  std::vector<float> cost(64);
  std::vector<std::uint8_t> kind(64);
  for (int doc = 0; doc < 30000; ++doc) {
    language->write(random, {tokens, cost.data(), kind.data()});
    std::string stack, pending, defined;
    int last_class = 0, in_definition = 0;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      const int token = tokens[t];
      std::string state = t == 0 ? "start"
                                 : "free " + std::to_string(last_class) + " " + stack +
                                       (defined.empty() ? "" : " d");
      if (in_definition > 0) state = "define " + defined;
      if (!pending.empty()) state = "repeat " + pending;
      next[state][token] += 1;
      seen.push_back({state, token, kind[t], cost[t]});
      if (in_definition > 0) {
        defined += static_cast<char>(token + 64);
        --in_definition;
      } else if (!pending.empty()) {
        EXPECT_EQ(token + 64, pending[0]);
        pending.erase(0, 1);
      } else if (token == 1) {
        defined.clear();
        in_definition = 2;
      } else if (token == 2) {
        pending = defined;
      } else if (token >= kOpen && token < kClose) {
        stack += static_cast<char>('a' + token - kOpen);
      } else if (token >= kClose && token < kWord0) {
        ASSERT_EQ(stack.back(), 'a' + token - kClose);
        stack.pop_back();
      } else if (token >= kWord0) {
        ASSERT_LT(token, kName0);
        last_class = (token - kWord0) / 4;
      }
    }
  }
  std::map<std::string, double> total;
  for (const auto& [state, counts] : next) {
    for (const auto& [token, n] : counts) total[state] += n;
  }
  std::array<double, kKinds> logged{}, counted{}, n{};
  for (const Seen& s : seen) {
    const auto k = static_cast<std::size_t>(s.kind);
    logged[k] += s.cost;
    counted[k] -= std::log(next[s.state][s.token] / total[s.state]);
    n[k] += 1;
  }
  for (std::size_t k = 0; k < kKinds; ++k) {
    EXPECT_NEAR(logged[k] / n[k], counted[k] / n[k], 0.01) << kKindNames[k];
  }
  EXPECT_EQ(logged[kCopy], 0);
}

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
    EXPECT_EQ(std::ssize(plan.buffers), handles.at(plan.entry)) << c.name;
  }
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

// Plain blocks are the same by a mean in fp32 that was never rounded to binary16: only traps, which
// say so, fail an answer for that.
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

// Long ones run alone in a graded run.
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

INSTANTIATE_TEST_SUITE_P(Both, TernaryBaseline, ::testing::Values("naive.cpp", "par.cpp"));

}  // namespace
}  // namespace assay::ternary_training
