// Recorded calls as cases: the arguments come back, and the answers of the tests' model become the
// model of the case.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "challenges/beam_search_case.h"
#include "challenges/recorded_case.h"

namespace assay::beam_search {
namespace {

using nlohmann::json;

constexpr float kDead = -std::numeric_limits<float>::infinity();

struct Row {
  std::int32_t item = 0;
  std::int64_t parent = -1;
  std::int32_t token = 0;
  std::int64_t state = 0;
  std::vector<float> values{};
};

// A call as a witness records it.
class Call {
 public:
  explicit Call(const json& params) : case_(params), recorded_(case_) { packets_.reserve(16); }

  Call& step(const std::vector<Row>& rows, std::int32_t status = ASSAY_OK) {
    std::vector<std::byte>& packet = packets_.emplace_back();
    const auto add = [&](auto value) {
      const auto bytes = std::as_bytes(std::span(&value, 1));
      packet.insert(packet.end(), bytes.begin(), bytes.end());
    };
    add(RecordedStep{static_cast<std::int32_t>(rows.size()), status});
    for (const Row& row : rows) add(row.parent);
    for (const Row& row : rows) add(row.item);
    for (const Row& row : rows) add(row.token);
    if (status == ASSAY_OK) {
      for (const Row& row : rows) add(row.state);
      for (const Row& row : rows) {
        for (const float x : row.values) add(x);
      }
    }
    recorded_.call.arrays.push_back({kSteps, false, packet});
    return *this;
  }

  std::optional<CaseSpec> taken() {
    return cases::GivenInputs(*subject().challenge).take(recorded_.call);
  }
  // The texts of the answer for the first item.
  std::vector<std::vector<std::int32_t>> texts() {
    const auto spec = taken();
    std::vector<std::vector<std::int32_t>> found;
    if (!spec) return found;
    const Case c(*spec, 1);
    for (const Answer& answer : c.reference().items.at(0)) found.push_back(answer.tokens);
    return found;
  }
  testing::RecordedCase& recorded() { return recorded_; }
  std::vector<std::byte>& packet(std::size_t i) { return packets_.at(i); }

 private:
  Case case_;
  testing::RecordedCase recorded_;
  std::vector<std::vector<std::byte>> packets_;
};

const json kSmall{{"K", 2}, {"V", 3}, {"max_new", 2}};

TEST(BeamRecorded, EveryCaseComesBackButTheLargest) {
  testing::ChallengeUnderTest tried = subject();
  // If the model fails, the failing step is recorded too, but these cases do not have that step.
  std::erase_if(tried.spec.cases, [](const CaseSpec& c) { return c.params.contains("fail_at"); });
  EXPECT_THAT(testing::not_recorded(tried, {kModelSeed}),
              ::testing::UnorderedElementsAre("beams_beyond_16_bits", "long_4096"));
}

TEST(BeamRecorded, WhatTheModelAnsweredIsItsModel) {
  Call call(kSmall);
  call.step({{0, -1, 9, 40, {-0.5f, -1, kDead}}})
      .step({{0, 40, 0, 41, {-2, -3, -4}}, {0, 40, 1, 42, {kDead, kDead, -0.25f}}});
  const auto spec = call.taken();
  ASSERT_TRUE(spec);
  const Case c(*spec, 1);
  const LanguageModel model = c.model();
  const auto row = [&](const State& state) {
    std::vector<float> values(3);
    model.items[0].row(state, values.data());
    return values;
  };
  const State start = model.items[0].start(0);
  EXPECT_EQ(row(start), (std::vector<float>{-0.5f, -1, kDead}));
  EXPECT_EQ(row(model.items[0].extend(start, 0)), (std::vector<float>{-2, -3, -4}));
  EXPECT_EQ(row(model.items[0].extend(start, 1)), (std::vector<float>{kDead, kDead, -0.25f}));
  EXPECT_EQ(call.texts(), (std::vector<std::vector<std::int32_t>>{{1, 2}, {0, 0}}));
}

// The accused continued with token 1: it dropped the better beam, and what follows that beam is
// unknown.
TEST(BeamRecorded, ABeamThatWasDroppedWronglyIsInTheRightAnswer) {
  json params = kSmall;
  params.update(json{{"K", 1}, {"max_new", 3}});
  Call call(params);
  call.step({{0, -1, 0, 0, {-0.5f, -1, -2}}})
      .step({{0, 0, 1, 1, {-0.25f, -3, -3}}})
      .step({{0, 1, 0, 2, {-0.25f, -3, -3}}});
  EXPECT_EQ(call.texts(), (std::vector<std::vector<std::int32_t>>{{0, 0, 0}}));
}

TEST(BeamRecorded, HalvesComeBackAsTheValuesThatTheyAre) {
  json params = kSmall;
  params["options"] = {{"rows", "bf16"}};
  Call call(params);
  call.step({{0, -1, 0, 0, {}}});
  for (const float x : {-0.5f, -1.0f, -3.0f}) {
    const std::uint16_t bits = float_to_bf16(x);
    const auto bytes = std::as_bytes(std::span(&bits, 1));
    call.packet(0).insert(call.packet(0).end(), bytes.begin(), bytes.end());
  }
  call.recorded().call.arrays.back().bytes = call.packet(0);
  const auto spec = call.taken();
  ASSERT_TRUE(spec);
  const Case c(*spec, 1);
  std::vector<float> values(3);
  c.model().items[0].row(c.model().items[0].start(0), values.data());
  EXPECT_EQ(values, (std::vector<float>{-0.5f, -1, -3}));
}

// Tests may give one state to several rows, or reuse the same numbers in every step.
TEST(BeamRecorded, StatesMeanWhatTheyWereGivenForLast) {
  json params = kSmall;
  params["max_new"] = 3;
  Call call(params);
  call.step({{0, -1, 0, 0, {-0.5f, -1, -4}}})
      .step({{0, 0, 0, 0, {-1, -2, -4}}, {0, 0, 1, 1, {-3, -5, -4}}})
      .step({{0, 0, 0, 0, {-1, -4, -4}}, {0, 0, 1, 1, {-4, -4, -0.25f}}});
  EXPECT_EQ(call.texts(), (std::vector<std::vector<std::int32_t>>{{0, 0, 0}, {0, 1, 2}}));

  Call same(params);
  same.step({{0, -1, 0, 7, {-0.5f, -1, -4}}})
      .step({{0, 7, 0, 7, {-1, -2, -4}}, {0, 7, 1, 7, {-3, -5, -4}}})
      .step({{0, 7, 0, 7, {-1, -4, -4}}, {0, 7, 1, 7, {-4, -4, -0.25f}}});
  EXPECT_EQ(same.texts(), (std::vector<std::vector<std::int32_t>>{{0, 0, 0}, {0, 1, 2}}));
}

TEST(BeamRecorded, WhatAnswersLikeNoModelIsNoCase) {
  const auto taken = [](std::vector<Row> rows, std::int32_t status = ASSAY_OK) {
    return Call(kSmall).step(rows, status).taken().has_value();
  };
  const std::vector<float> legal{-1, -2, -3};
  EXPECT_TRUE(taken({{0, -1, 0, 0, legal}}));
  EXPECT_FALSE(taken({{0, -1, 0, 0, {-1, NAN, -3}}}));
  EXPECT_FALSE(taken({{0, -1, 0, 0, {-1, 0.5f, -3}}})) << "a log-probability above 0";
  EXPECT_FALSE(taken({{0, -1, 0, -1, legal}})) << "a state below 0";
  EXPECT_FALSE(taken({{0, -1, 0, 0, {-1, -2}}})) << "a row that is too short";
  EXPECT_FALSE(taken({{0, -1, 0, 0, {-1, -2, -3, -4}}})) << "a row that is too long";
  EXPECT_FALSE(taken({{0, -1, 0, 0, legal}, {0, -1, 0, 1, {-1, -2, -4}}}))
      << "two rows of one text";
  EXPECT_FALSE(taken({{0, -1, 0, 0, legal}}, ASSAY_ECAP)) << "the model fails";
}

// A wrong question is the accused's fault: the model's answers up to then decide.
TEST(BeamRecorded, TheRecordEndsWithAQuestionThatMayNotBeAsked) {
  for (const Row& wrong : {Row{1, 0, 0}, Row{0, 5, 0}, Row{0, 0, 3}, Row{0, 0, -1}, Row{0, 0, 2}}) {
    for (const std::int32_t status : {ASSAY_OK, ASSAY_EINVAL}) {
      Call call(kSmall);
      call.step({{0, -1, 0, 0, {-1, -2, kDead}}}).step({wrong}, status);
      EXPECT_THAT(call.texts(), ::testing::SizeIs(2)) << wrong.item << wrong.parent << wrong.token;
    }
  }
  Call unreadable(kSmall);
  EXPECT_TRUE(unreadable.step({{0, -1, 0, 0, {-1, -2, -3}}}).step({}).taken());
  json params = kSmall;
  params["eos"] = 0;
  Call ended(params);
  ended.step({{0, -1, 0, 0, {-1, -2, -3}}}).step({{0, 0, 0, 1, {-1, -2, -3}}});
  EXPECT_TRUE(ended.taken());
}

TEST(BeamRecorded, WhatRoundingDecidesIsNoCase) {
  json params = kSmall;
  params.update(json{{"K", 1}, {"logits", true}});
  EXPECT_FALSE(Call(params).step({{0, -1, 0, 0, {0, 1e-6f, -1}}}).taken());
  EXPECT_TRUE(Call(params).step({{0, -1, 0, 0, {0, 1e-2f, -1}}}).taken());
  // Exact sums are either equal or not, regardless of later rounding.
  params.update(json{{"K", 2}, {"logits", false}, {"alpha", 0.7}});
  const auto taken = [&](float more) {
    Call call(params);
    call.step({{0, -1, 0, 0, {-0.5f, -1 - more, -9}}})
        .step({{0, 0, 0, 1, {-1, -9, -9}}, {0, 0, 1, 2, {-0.5f, -9, -9}}});
    return call.taken().has_value();
  };
  EXPECT_TRUE(taken(0));
  EXPECT_TRUE(taken(0x1p-12f));
  json wide = params;
  wide.update(json{{"K", 1}, {"max_new", 1}});
  EXPECT_FALSE(
      Call(wide).step({{0, -1, 0, 0, {-0x1p-20f, -0x1p-20f - 0x1p-43f, -0x1p20f}}}).taken())
      << "bits apart that a sum in double has no room for";
}

TEST(BeamRecorded, WhatTestsForgeIsBounded) {
  const auto refused = [](auto change, const json& more = json::object()) {
    json params = kSmall;
    params.update(more);
    Call call(params);
    EXPECT_TRUE(call.taken());
    call.recorded().with<Params>(change);
    return !call.taken();
  };
  constexpr std::int32_t kHuge = std::numeric_limits<std::int32_t>::max();
  EXPECT_TRUE(refused([](Params& p) { p.search.B = kHuge; }));
  EXPECT_TRUE(refused([](Params& p) { p.search.B = -1; }));
  EXPECT_TRUE(refused([](Params& p) { p.search.B = 2; })) << "one item has prompts";
  EXPECT_TRUE(refused([](Params& p) { p.search.K = kHuge; }));
  EXPECT_TRUE(refused([](Params& p) { p.search.K = 0; }));
  EXPECT_TRUE(refused([](Params& p) { p.search.max_new = kHuge; }));
  EXPECT_TRUE(refused([](Params& p) { p.search.eos = 3; }));
  EXPECT_TRUE(refused([](Params& p) { p.search.alpha = NAN; }));
  EXPECT_TRUE(refused([](Params& p) { p.search.keep_finished = 2; }));
  EXPECT_TRUE(refused([](Params& p) { p.V = kHuge; }));
  EXPECT_TRUE(refused([](Params& p) { p.V = 0; }));
  EXPECT_TRUE(refused([](Params& p) { p.kind = 7; }));
  const json options{{"options", {{"bad", {{1}, {0, 2}}}}}};
  EXPECT_TRUE(refused([](Params& p) { p.options.n_bad = 1; }, options));
  EXPECT_TRUE(refused([](Params& p) { p.options.n_bad = kHuge; }, options));
  EXPECT_TRUE(refused([](Params& p) { p.options.groups = 0; }, options));
  EXPECT_TRUE(refused([](Params& p) { p.options.diversity = -1; }, options));
  EXPECT_TRUE(refused([](Params& p) { p.options.row_dtype = 9; }, options));
  EXPECT_TRUE(refused([](Params& p) { p.options.patience = 2; }, options)) << "nothing is kept";
}

// Lengths that do not add up would make the adapter leave the array.
TEST(BeamRecorded, PromptsThatAreLongerThanTheirArrayAreNoCase) {
  for (const std::int32_t length : {7, 8, -1, std::numeric_limits<std::int32_t>::max()}) {
    Call call(kSmall);
    call.recorded().array(kPromptLen).bytes = std::as_bytes(std::span(&length, 1));
    EXPECT_EQ(call.taken().has_value(), length == 7) << length;
  }
}

// One state for all texts, asked for again and again: the number of texts that it may stand for is
// bounded.
TEST(BeamRecorded, QuestionsThatStandForMoreAndMoreTextsEndSoon) {
  json params{{"K", 8}, {"V", 8}, {"max_new", 60}};
  Call call(params);
  const std::vector<float> values(8, -1.0f);
  call.step({{0, -1, 0, 0, values}});
  for (int t = 0; t < 14; ++t) {
    std::vector<Row> rows;
    for (std::int32_t v = 0; v < 8; ++v) rows.push_back({0, 0, v, 0, values});
    call.step(rows);
  }
  EXPECT_FALSE(call.taken());
}

}  // namespace
}  // namespace assay::beam_search
