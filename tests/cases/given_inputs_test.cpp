#include "cases/given_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <span>
#include <vector>

#include "cases/fake_world.h"

namespace assay::cases {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

// Copies as many floats as the params say; only positive counts are legal.
class Sized final : public testing::Copying {
 public:
  std::optional<nlohmann::json> recorded(const RecordedCall& call) const override {
    const auto n = call.params_as<std::int64_t>();
    if (!n || *n < 0) return std::nullopt;
    return nlohmann::json{{"n", *n}};
  }
  CasePlan plan(const CaseSpec& spec) const override {
    CasePlan plan = Copying::plan(spec);
    for (BufferPlan& buffer : plan.buffers) buffer.shape = {spec.params.at("n")};
    plan.set_params(spec.params.at("n").get<std::int64_t>());
    return plan;
  }
  bool adopt(const CaseSpec&, const CasePlan&, BufferViews buffers) const override {
    for (float& x : buffers[0].span<float>()) {
      if (!(x >= 0)) return false;
      x = std::min(x, 100.0f);
    }
    return true;
  }
};

class GivenInputsTest : public ::testing::Test {
 protected:
  std::optional<CaseSpec> take(std::int64_t n, std::vector<float> x) {
    n_ = n;
    x_ = std::move(x);
    call_ = {};
    call_.params = std::as_bytes(std::span(&n_, 1));
    call_.arrays.push_back({0, false, std::as_bytes(std::span(x_))});
    return given_.take(call_);
  }

  std::vector<float> filled(const CaseSpec& spec) const {
    std::vector<float> x(static_cast<std::size_t>(n_), 77.0f);
    const std::array<BufferView, 2> views{BufferView{x.data(), x.size() * 4}, BufferView{}};
    given_.fill(spec, given_.plan(spec), Seeds(1), views);
    return x;
  }

  Sized sized_;
  GivenInputs given_{sized_};
  RecordedCall call_;
  std::int64_t n_ = 0;
  std::vector<float> x_;
};

TEST_F(GivenInputsTest, AreThoseOfTheCall) {
  const auto spec = take(3, {1, 2, 3});
  ASSERT_TRUE(spec);
  EXPECT_THAT(filled(*spec), ElementsAre(1, 2, 3));
  EXPECT_EQ(given_.shape(*spec), "shape of recorded");
}

TEST_F(GivenInputsTest, MayBePutRight) {
  const auto spec = take(2, {1, 1000});
  ASSERT_TRUE(spec);
  EXPECT_THAT(filled(*spec), ElementsAre(1, 100));
}

TEST_F(GivenInputsTest, AreNoCaseWhereTheyAreNotLegal) {
  EXPECT_FALSE(take(2, {1, -1}));
  EXPECT_FALSE(take(-1, {}));
  EXPECT_FALSE(take(std::int64_t{1} << 40, {1})) << "larger than can be judged";
  EXPECT_FALSE(take(1, {1, 2})) << "more than the case has room for";
}

TEST_F(GivenInputsTest, OfAnotherEntryAreNoCase) {
  ASSERT_TRUE(take(1, {1}));
  call_.entry = 5;
  EXPECT_FALSE(given_.take(call_));
}

TEST_F(GivenInputsTest, NullStandsForWhatIsEmptyAlone) {
  take(1, {1});
  call_.arrays[0] = {0, true, {}};
  EXPECT_FALSE(given_.take(call_));
  n_ = 0;
  EXPECT_TRUE(given_.take(call_));
}

TEST_F(GivenInputsTest, WhatTheCallDoesNotHaveIsZero) {
  take(3, {1, 2, 3});
  call_.arrays.clear();
  const auto spec = given_.take(call_);
  ASSERT_TRUE(spec);
  EXPECT_THAT(filled(*spec), Each(0.0f));
}

TEST_F(GivenInputsTest, ComeInPiecesOneBehindTheOther) {
  take(3, {1});
  const std::vector<float> more{2, 3}, behind{4};
  call_.arrays.push_back({0, false, std::as_bytes(std::span(more))});
  call_.arrays.push_back({0, false, std::as_bytes(std::span(behind))});
  const auto spec = given_.take(call_);
  ASSERT_TRUE(spec);
  EXPECT_THAT(filled(*spec), ElementsAre(1, 2, 3));
  EXPECT_EQ(describe_inputs(given_.plan(*spec), call_), "x = 1");
  n_ = 2;
  EXPECT_FALSE(given_.take(call_)) << "a piece that reaches beyond the end";
}

TEST_F(GivenInputsTest, AChallengeThatKnowsNoSuchCallsHasNoCase) {
  const testing::Copying copying;
  GivenInputs given(copying);
  EXPECT_FALSE(given.take(RecordedCall{}));
}

TEST_F(GivenInputsTest, AreToldByTheirFirstValues) {
  const auto spec = take(8, {1, 2.5, 3, 4, 5, 6, 7, 8});
  ASSERT_TRUE(spec);
  EXPECT_EQ(describe_inputs(given_.plan(*spec), call_), "x = 1, 2.5, 3, 4, 5, 6, ... 8 values");
}

}  // namespace
}  // namespace assay::cases
