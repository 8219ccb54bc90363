// The baselines, the examples, the server, and outputs that must be rejected.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "assay/random.h"
#include "challenges/beam_search_case.h"

namespace assay::beam_search {
namespace {

using nlohmann::json;

// --- implementations and examples

class Correct : public ::testing::TestWithParam<const char*> {};

TEST_P(Correct, PassesEveryCaseThatIsNotTimed) {
  testing::DirectRunner runner(subject().name,
                               testing::compile(subject().file(GetParam()), subject().name));
  for (const CaseSpec& c : subject().spec.cases) {
    if (c.group == CaseGroup::timed) continue;
    for (const std::uint64_t seed : {1, 2}) {
      const CaseResult result = runner.run(c, seed);
      // The plain implementation has every optional part, the expert one has all except groups.
      const std::string file = GetParam();
      const bool may_lack = c.group == CaseGroup::completeness &&
                            (file.find("submissions") != std::string::npos ||
                             (file == "baselines/par.cpp" && c.capability == "diverse_groups"));
      if (may_lack && result.verdict == Verdict::unsupported) continue;
      EXPECT_EQ(result.verdict, Verdict::ok)
          << c.name << ", seed " << seed << ": " << result.detail;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Beam, Correct,
                         ::testing::Values("baselines/naive.cpp", "baselines/par.cpp",
                                           "../../submissions/textbook/beam_search/submission.cpp",
                                           "../../submissions/tuned/beam_search/submission.cpp"));

CaseResult run_with(testing::DirectRunner& runner, json params, std::uint64_t seed,
                    std::int32_t status = ASSAY_OK) {
  CaseSpec spec;
  spec.name = "witness";
  spec.group = CaseGroup::completeness;
  spec.expect_status = status;
  spec.params = std::move(params);
  return runner.run(spec, seed);
}

// Inputs can be made for every draw, up to the widest, including those with inexact sums and those
// whose scores are close because the penalty divides them by much.
TEST(BeamDraws, LeaveDecisionsClear) {
  json draw = {{"B", 1},
               {"K", 1},
               {"V", 2100},
               {"max_new", 1},
               {"eos", "middle"},
               {"alpha", 0.0},
               {"logits", false},
               {"prompts", {7}},
               {"rank_mode", 0},
               {"penalty", 0},
               {"min_new", 0},
               {"keep_finished", 0},
               {"invalid", json::object()},
               {"options", json::object()},
               {"model", {{"inexact", true}, {"eos_rate", 0.1}}}};
  for (const double alpha : {0.0, 2.0}) {
    draw["alpha"] = alpha;
    for (const int K : {1, 8, 15, 17, 33, 65}) {
      draw["K"] = K;
      std::optional<DrawnCase> widest;
      for (int max_new = 1; max_new <= 50; ++max_new) {
        draw["max_new"] = max_new;
        if (auto legal = subject().challenge->drawn(draw)) widest = std::move(legal);
      }
      ASSERT_TRUE(widest) << K;
      for (const std::uint64_t seed : {1, 2, 3}) {
        EXPECT_NO_THROW(Case(widest->params, seed)) << widest->params << ", seed " << seed;
      }
    }
  }
  draw["K"] = 200;
  draw["max_new"] = 2;
  EXPECT_FALSE(subject().challenge->drawn(draw));
}

class Options : public ::testing::TestWithParam<const char*> {};

// The cases set one option each; here the options are combined.
TEST_P(Options, WorkTogether) {
  testing::DirectRunner runner(subject().name,
                               testing::compile(subject().file(GetParam()), subject().name));
  json params = kTogether;
  params.update(json{{"B", 5}, {"max_new", 12}, {"eos", 3}, {"model", {{"eos_rate", 0.2}}}});
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CaseResult result = run_with(runner, params, seed);
    if (std::string(GetParam()) == "baselines/naive.cpp") {
      EXPECT_EQ(result.verdict, Verdict::ok) << result.detail;
    }
    json without_groups = params;
    without_groups["options"]["groups"] = 1;
    without_groups["logits"] = seed % 2 == 0;
    without_groups["V"] = seed % 3 == 0 ? 700 : 7;
    result = run_with(runner, without_groups, seed);
    EXPECT_EQ(result.verdict, Verdict::ok) << result.detail;
  }
}

// With a negative alpha a beam loses value with every token: two finished beams can outrank what
// the active beam becomes, although they do not outrank what it is.
TEST_P(Options, GiveUpNothingThatIsStillAhead) {
  testing::DirectRunner runner(subject().name,
                               testing::compile(subject().file(GetParam()), subject().name));
  const json script{{"", {{"0", -1.25}, {"1", -0.25}}},
                    {"1", {{"0", -0.3125}, {"2", -0.25}}},
                    {"*", {{"3", -0.25}}}};
  const json params{{"K", 2},
                    {"V", 8},
                    {"max_new", 5},
                    {"eos", 0},
                    {"alpha", -1},
                    {"keep_finished", 1},
                    {"model", {{"script", script}}}};
  const CaseResult result = run_with(runner, params, 1);
  EXPECT_EQ(result.verdict, Verdict::ok) << result.detail;
}

TEST_P(Options, AreChecked) {
  testing::DirectRunner runner(subject().name,
                               testing::compile(subject().file(GetParam()), subject().name));
  const json base{{"B", 2}, {"K", 4}, {"V", 9}, {"max_new", 5}, {"eos", 3}, {"keep_finished", 1}};
  const std::vector<json> wrong{
      {{"options", {{"groups", 0}}}},
      {{"options", {{"groups", 8}}}},
      {{"options", {{"groups", 2}, {"diversity", -0.5}}}},
      {{"options", {{"patience", -1.0}}}},
      {{"options", {{"bad", {{2}, json::array()}}}}},
      {{"options", {{"bad", {{2}, {-1}}}}}},
      {{"options", {{"no_repeat_ngram", -2}}}},
      {{"options", json::object()}, {"override", {{"n_bad", -1}}}},
      {{"options", json::object()}, {"override", {{"row_dtype", 3}}}},
      {{"options", json::object()}, {"override", {{"options_size", 8}}}},
      {{"options", json::object()}, {"override", {{"K", 0}}}},
  };
  for (const json& change : wrong) {
    json params = base;
    params.update(change);
    const CaseResult result = run_with(runner, params, 1, ASSAY_EINVAL);
    EXPECT_EQ(result.verdict, Verdict::ok) << change.dump() << " " << result.detail;
  }
  json right = base;
  right["options"] = json::object();
  EXPECT_EQ(run_with(runner, right, 1).verdict, Verdict::ok);
}

INSTANTIATE_TEST_SUITE_P(Beam, Options,
                         ::testing::Values("baselines/naive.cpp", "baselines/par.cpp"));

TEST(BeamExamples, CoverEveryTrap) { testing::expect_traps_covered(subject()); }

// --- generator, server and checker

TEST(BeamPlan, EveryHandleHasItsBuffer) {
  for (const CaseSpec& spec : subject().spec.cases) {
    const CasePlan plan = subject().challenge->plan(spec);
    EXPECT_EQ(std::ssize(plan.buffers), plan.entry == kPlain ? kPlainHandles : kHandles)
        << spec.name;
  }
}

TEST(BeamFill, DependsOnTheSeedAlone) {
  for (const CaseSpec& spec : subject().spec.cases) {
    if (spec.group != CaseGroup::core) continue;
    const Case a(spec, 7), b(spec, 7), other(spec, 8);
    bool differs = false;
    for (const int handle : {kPromptLen, kPromptStart, kPrompt, kModelSeed}) {
      EXPECT_EQ(a.bytes(handle), b.bytes(handle)) << spec.name;
      differs |= a.bytes(handle) != other.bytes(handle);
    }
    EXPECT_TRUE(differs) << spec.name;
    EXPECT_NE(a.reference().items[0][0].tokens, other.reference().items[0][0].tokens) << spec.name;
  }
}

// Whatever a case's seed, no decision depends on rounding.
TEST(BeamFill, LeavesNoDecisionToRounding) {
  for (const CaseSpec& spec : subject().spec.cases) {
    if (spec.expect_status != ASSAY_OK || spec.group == CaseGroup::timed ||
        spec.group == CaseGroup::resource)
      continue;
    for (std::uint64_t seed = 1; seed <= 5; ++seed)
      EXPECT_TRUE(Case(spec, seed).reference().clear) << spec.name;
  }
}

TEST(BeamCheck, RejectsUntouchedZeroAndNanOutputs) {
  for (const CaseSpec& spec : subject().spec.cases) {
    if (spec.group == CaseGroup::core) testing::expect_blank_outputs_fail(subject(), spec.name);
  }
}

// Even the right answer must not pass if the model was never called.
TEST(BeamCheck, RejectsAnAnswerThatNobodyAskedFor) {
  const Case c(json{{"B", 1}, {"K", 2}, {"V", 9}, {"max_new", 3}}, 4);
  const std::vector<Answer>& answer = c.reference().items[0];
  std::memset(c.buffer(kSeq).data, 0xff, c.buffer(kSeq).bytes);
  for (std::size_t k = 0; k < answer.size(); ++k) {
    std::copy(answer[k].tokens.begin(), answer[k].tokens.end(),
              c.buffer(kSeq).as<std::int32_t>() + 3 * k);
    c.buffer(kLen).as<std::int32_t>()[k] = 3;
    c.buffer(kAcc).as<double>()[k] = answer[k].acc;
    c.buffer(kScore).as<double>()[k] = answer[k].score;
    c.buffer(kFinished).as<std::int32_t>()[k] = 0;
  }
  *c.buffer(kNOut).as<std::int32_t>() = 2;
  const CheckResult result = c.check();
  EXPECT_FALSE(result.pass);
  EXPECT_NE(result.detail.find("only 0 calls"), std::string::npos) << result.detail;
}

TEST(BeamServer, RefusesWhatNoSearchMayAsk) {
  const json params{{"B", 2},       {"K", 3},   {"V", 9},
                    {"max_new", 9}, {"eos", 1}, {"model", {{"dead", 0.5}}}};
  const auto fresh = [&] { return Case(params, 8); };
  {
    Case c = fresh();
    ASSERT_EQ(c.ask({-1, -1}, {0, 1}, {0, 0}), ASSAY_OK);
    std::vector<float> row(9);
    std::memcpy(row.data(), c.answer.data() + 16, 36);
    std::int32_t alive = -1, dead = -1;
    for (std::int32_t v = 0; v < 9; ++v) {
      if (v != 1) (std::isinf(row[static_cast<std::size_t>(v)]) ? dead : alive) = v;
    }
    ASSERT_TRUE(alive >= 0 && dead >= 0);
    const std::int64_t first = c.state(0);
    EXPECT_EQ(c.ask({first}, {1}, {alive}), ASSAY_EINVAL) << "another item";
    EXPECT_EQ(c.ask({first}, {0}, {1}), ASSAY_EINVAL) << "eos";
    EXPECT_EQ(c.ask({first}, {0}, {dead}), ASSAY_EINVAL) << "probability 0";
    EXPECT_EQ(c.ask({first}, {0}, {9}), ASSAY_EINVAL) << "token";
    EXPECT_EQ(c.ask({first}, {0}, {-1}), ASSAY_EINVAL) << "token";
    EXPECT_EQ(c.ask({first + 1}, {0}, {alive}), ASSAY_EINVAL) << "state";
    EXPECT_FALSE(c.check().pass);
  }
  EXPECT_EQ(fresh().ask({-1, -1}, {0, 0}, {0, 0}), ASSAY_EINVAL) << "the start twice";
  {
    json grouped = params;
    grouped.update(json{{"K", 4}, {"options", {{"groups", 2}}}});
    Case c(grouped, 8);
    EXPECT_EQ(c.ask({-1, -1, -1}, {0, 1, 0}, {0, 0, 0}), ASSAY_OK) << "the start for two groups";
    EXPECT_EQ(c.ask({-1}, {0}, {0}), ASSAY_EINVAL) << "the start for a third group";
  }
  EXPECT_EQ(fresh().ask({-1}, {2}, {0}), ASSAY_EINVAL) << "item";
  EXPECT_EQ(fresh().ask({-1}, {-1}, {0}), ASSAY_EINVAL) << "item";
  EXPECT_EQ(fresh().ask({}, {}, {}), ASSAY_EINVAL) << "no rows";
  EXPECT_EQ(fresh().ask(std::vector<std::int64_t>(7, -1), std::vector<std::int32_t>(7),
                        std::vector<std::int32_t>(7)),
            ASSAY_EINVAL)
      << "too many rows";
  Case c = fresh();
  std::vector<std::byte> response(64), request(24);
  EXPECT_EQ(c.server()->serve(kStep, {}, response), ASSAY_EINVAL);
  EXPECT_EQ(c.server()->serve(kStep, request, response), ASSAY_EINVAL);
  const StepHeader huge{std::int64_t{1} << 62};
  std::memcpy(request.data(), &huge, sizeof huge);
  EXPECT_EQ(c.server()->serve(kStep, request, response), ASSAY_EINVAL);
  EXPECT_EQ(c.server()->serve(7, request, response), ASSAY_EINVAL);
}

// Random bytes after counts of every size: each request is answered at once, and malformed ones are
// never honoured.
TEST(BeamServer, SurvivesRandomRequests) {
  Random random(3);
  std::vector<std::byte> request, response;
  const Case c(json{{"B", 2}, {"K", 3}, {"V", 9}, {"max_new", 2000}}, 8);
  for (int i = 0; i < 5000; ++i) {
    request.resize(static_cast<std::size_t>(random.below(400)));
    response.resize(static_cast<std::size_t>(random.below(400)));
    for (std::byte& b : request) b = static_cast<std::byte>(random.next());
    for (const std::size_t at : {std::size_t{0}, std::size_t{8}}) {  // counts that may be valid
      const std::int64_t count = std::int64_t{1} << random.below(63) >> random.below(63);
      if (request.size() >= at + 8 && random.below(4) > 0)
        std::memcpy(request.data() + at, &count, sizeof count);
    }
    const auto kind = static_cast<std::uint32_t>(random.below(4));
    c.server()->serve(kind, request, response);
  }
  EXPECT_FALSE(c.check().pass);
}

}  // namespace
}  // namespace assay::beam_search
