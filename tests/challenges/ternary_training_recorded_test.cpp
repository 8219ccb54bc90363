// Recorded calls as cases: those of formats and linear layers come back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "challenges/recorded_case.h"
#include "challenges/ternary_training_case.h"

namespace assay::ternary_training {
namespace {

using nlohmann::json;

TEST(TernaryRecorded, FormatsAndLinearLayersComeBack) {
  std::set<std::string> entries, others;
  for (const std::string& name : testing::not_recorded(subject(), {linear::kSecret})) {
    const std::string entry = subject().case_named(name).params.at("entry");
    const bool recorded = entry != "train" && entry != "train_part" && entry != "logits" &&
                          entry != "generate" && entry != "distill";
    (recorded ? others : entries).insert(recorded ? name : entry);
  }
  EXPECT_THAT(others, ::testing::ElementsAre("blob_of_wide_heads"));  // larger than is recorded
  EXPECT_THAT(entries, ::testing::UnorderedElementsAre("train", "train_part", "logits", "generate",
                                                       "distill"));
}

CaseSpec made(json params) {
  CaseSpec spec;
  spec.name = "made_here";
  spec.params = std::move(params);
  return spec;
}

// Whether the call is still a case with the inputs that `change` leaves.
template <class Change>
bool taken(const CaseSpec& spec, int handle, Change change) {
  const Drawn drawn(spec, 1);
  testing::RecordedCase recorded(drawn);
  std::string bytes = drawn.bytes(handle);
  change(bytes);
  recorded.array(handle).bytes = std::as_bytes(std::span(bytes));
  return cases::GivenInputs(*subject().challenge).take(recorded.call).has_value();
}

const auto kAsItIs = [](std::string&) {};

TEST(TernaryRecorded, BlocksThatAreNoneAreNoCase) {
  for (const char* entry : {"dequantize", "pack_dense", "unpack_dense", "linear"}) {
    const CaseSpec spec = made({{"entry", entry}, {"M", 2}, {"rows", 2}, {"cols", 256}});
    const int handle = std::string(entry) == "linear" ? int{linear::kBlocks} : 0;
    const bool dense = std::string(entry) == "unpack_dense";
    EXPECT_TRUE(taken(spec, handle, kAsItIs)) << entry;
    EXPECT_FALSE(taken(spec, handle, [&](std::string& b) { b[dense ? 3 : 5] = dense ? 1 : -1; }))
        << entry;
    EXPECT_FALSE(taken(spec, handle, [&](std::string& b) { b[dense ? 27 : 1] = '\x7c'; }))
        << entry << ": a scale that is not finite";
    EXPECT_FALSE(taken(spec, handle, [&](std::string& b) { b[dense ? 27 : 1] = '\x84'; }))
        << entry << ": a scale below 0";
  }
}

TEST(TernaryRecorded, NumbersWithoutBoundAreNoCase) {
  const auto set = [](float value) {
    return [=](std::string& bytes) { std::memcpy(bytes.data() + 8, &value, sizeof value); };
  };
  const CaseSpec quantize = made({{"entry", "quantize"}, {"rows", 1}, {"cols", 128}}),
                 layer = made({{"entry", "linear"}, {"M", 2}, {"rows", 2}, {"cols", 128}});
  for (const float x : {NAN, INFINITY}) {
    EXPECT_FALSE(taken(quantize, quantize::kW, set(x)));
    EXPECT_FALSE(taken(layer, linear::kX, set(x)));
    EXPECT_FALSE(taken(layer, linear::kDy, set(x)));
  }
  EXPECT_TRUE(taken(quantize, quantize::kW, set(1e30f)));
  EXPECT_FALSE(taken(layer, linear::kX, set(1e30f)));
}

// The mean that becomes the scale is a sum, which another order may round differently.
TEST(TernaryRecorded, AScaleThatTheOrderOfTheSumDecidesIsNoCase) {
  const CaseSpec spec = made({{"entry", "quantize"}, {"rows", 1}, {"cols", 128}});
  const auto block = [&](float first, float second, float others) {
    return taken(spec, quantize::kW, [=](std::string& bytes) {
      std::vector<float> w(128, others);
      w[0] = first;
      w[1] = second;
      std::memcpy(bytes.data(), w.data(), bytes.size());
    });
  };
  const float middle = 1 + 0x1p-11f;  // between two scales
  EXPECT_TRUE(block(middle, middle, middle)) << "a sum that is exact";
  EXPECT_TRUE(block(1, 1, 1e-30f));
  EXPECT_FALSE(block(128 * middle, 0x1p-120f, 0)) << "so near the middle that rounding decides";
}

TEST(TernaryRecorded, SizesOfAForgerAreNoCase) {
  const Drawn drawn(made({{"entry", "linear"}, {"M", 2}, {"rows", 3}, {"cols", 128}}), 1);
  const auto refused = [&](auto change) {
    testing::RecordedCase recorded(drawn);
    cases::GivenInputs given(*subject().challenge);
    EXPECT_TRUE(given.take(recorded.call));
    recorded.with<Params>(change);
    return !given.take(recorded.call);
  };
  constexpr std::int64_t kHuge = std::int64_t{1} << 62;
  EXPECT_TRUE(refused([](Params& p) { p.M = kHuge; }));
  EXPECT_TRUE(refused([](Params& p) { p.M = -1; }));
  EXPECT_TRUE(refused([](Params& p) { p.rows = kHuge; }));
  EXPECT_TRUE(refused([](Params& p) { p.rows = 2; })) << "dy is longer than that";
  EXPECT_TRUE(refused([](Params& p) { p.cols = 127; }));
  EXPECT_TRUE(refused([](Params& p) { p.cols = kHuge; }));
  const Drawn sizes(made({{"entry", "blob_bytes"}, {"config", json::object()}}), 1);
  const auto config = [&](auto change) {
    testing::RecordedCase recorded(sizes);
    recorded.with<Params>([&](Params& p) { change(p.config); });
    return cases::GivenInputs(*subject().challenge).take(recorded.call).has_value();
  };
  EXPECT_TRUE(config([](tt_config&) {}));
  EXPECT_TRUE(config([](tt_config& c) { c.d = -128; })) << "0 bytes are due";
  EXPECT_FALSE(config([](tt_config& c) { c.size = 4; }));
  EXPECT_FALSE(config([](tt_config& c) { c.L = 1 << 30; }));
  EXPECT_FALSE(config([](tt_config& c) { c.d = c.hd = c.Hq = c.L = 1 << 16; }));
}

// A sum of equal values is right in whatever order it is added.
TEST(TernaryRecorded, ALongSumIsHeldToABoundOfEveryOrder) {
  const Drawn drawn(made({{"entry", "linear"}, {"M", 1}, {"rows", 1}, {"cols", 4096}}), 1);
  const testing::RecordedCase recorded(drawn);
  const auto spec = cases::GivenInputs(*subject().challenge).take(recorded.call);
  ASSERT_TRUE(spec);
  EXPECT_GE(spec->params.at("C"), 4096.0);
}

}  // namespace
}  // namespace assay::ternary_training
