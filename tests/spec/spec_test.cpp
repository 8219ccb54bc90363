#include "spec/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "assay/error.h"
#include "cases/challenge_registry.h"
#include "support/error_of.h"
#include "support/paths.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

class SpecTest : public ::testing::Test {
 protected:
  SpecTest()
      : folder_(fs::temp_directory_path() / ("assay-spec-" + std::to_string(::getpid())) /
                "sample") {
    fs::create_directories(folder_);
    document_ = json::parse(R"({
      "schema": 1, "name": "sample", "title": "Sample", "difficulty": "medium", "summary": "s",
      "symbols": {"required": ["f"], "optional": []}, "limits": {"memory_mib": 64, "heap_mib": 2, "threads": 2},
      "weights": {"correctness": 50, "accuracy": 5, "performance": 20, "resources": 10, "completeness": 10, "tests": 5},
      "correctness_shares": {"core": 0.5, "edge": 0.2, "trap": 0.3}, "accuracy": {"full": 1, "zero": 4},
      "cases": [{"name": "a", "group": "core", "params": {}},
                {"name": "b", "group": "completeness", "capability": "extra", "params": {}}],
      "resources": [{"name": "r", "case": "a", "metric": "m", "full": 1, "zero": 2}],
      "capabilities": [{"name": "extra", "summary": "e"}]})");
  }
  ~SpecTest() override { fs::remove_all(folder_.parent_path()); }

  void write(const std::string& text) const { std::ofstream(folder_ / "spec.json") << text; }
  ChallengeSpec load() const { return load_spec(folder_); }
  std::string error_of(const std::string& text) const {
    write(text);
    try {
      load();
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }
  std::string error_after(const std::function<void(json&)>& change) {
    json changed = document_;
    change(changed);
    return error_of(changed.dump());
  }

  fs::path folder_;
  json document_;
};

TEST_F(SpecTest, LoadsWhatIsValid) {
  write(document_.dump());
  const ChallengeSpec spec = load();
  EXPECT_EQ(spec.cases.size(), 2u);
  EXPECT_EQ(spec.limits.memory_bytes, 64 << 20);
  EXPECT_EQ(spec.limits.heap_bytes, 2 << 20);
  EXPECT_EQ(spec.resources[0].case_names, std::vector<std::string>{"a"});
}

TEST(SpecNamed, IsTheOneOfThatNameOrAnErrorThatNamesTheNearest) {
  std::vector<ChallengeSpec> specs(2);
  specs[0].name = "softmax";
  specs[1].name = "attention";
  EXPECT_EQ(&spec_named(specs, "attention"), &specs[1]);
  EXPECT_EQ(testing::error_of([&] { spec_named(specs, "atention"); }),
            "unknown challenge 'atention'; did you mean 'attention'?");
  EXPECT_THAT(testing::error_of([&] { spec_named({}, "softmax"); }), HasSubstr("softmax"));
}

TEST_F(SpecTest, TheSimulatorGetsTheCasesAndShapesMeantForIt) {
  document_["cases"] = json::parse(R"([
    {"name": "a", "group": "core", "params": {"n": 4096, "x": {"mean": 1, "sigma": 2}},
     "sim": {"params": {"n": 64, "x": {"sigma": null}}, "instructions": 5000}},
    {"name": "b", "group": "completeness", "capability": "extra", "params": {}, "sim": false},
    {"name": "c", "group": "timed", "params": {}},
    {"name": "d", "group": "timed", "params": {"n": 8}, "sim": {"params": {"n": 2}}},
    {"name": "e", "group": "edge", "params": {}},
    {"name": "f", "group": "edge", "params": {}, "exclusive": true}])");
  document_["resources"] = json::parse(R"([
    {"name": "r", "case": ["a", "b"], "metric": "m", "full": 1, "zero": 2},
    {"name": "s", "case": "b", "metric": "m", "full": 1, "zero": 2}])");
  write(document_.dump());
  const ChallengeSpec whole = load(), sim = spec_for(Device::sim, whole);
  std::string names;
  for (const CaseSpec& c : sim.cases) names += c.name;
  EXPECT_EQ(names, "ade");
  EXPECT_EQ(sim.cases[0].params, json::parse(R"({"n": 64, "x": {"mean": 1}})"));
  EXPECT_EQ(sim.cases[0].instruction_limit, 5000u);
  EXPECT_EQ(sim.cases[1].instruction_limit, kInstructionLimit);
  ASSERT_EQ(sim.resources.size(), 1u);
  EXPECT_EQ(sim.resources[0].case_names, std::vector<std::string>{"a"});
  EXPECT_EQ(sim.cases[1].params.at("n"), 2);
  const ChallengeSpec real = spec_for(Device::cuda, whole);
  ASSERT_EQ(real.cases.size(), 3u) << "the same cases";
  EXPECT_EQ(real.cases[0].params, sim.cases[0].params);
  EXPECT_EQ(real.cases[1].params.at("n"), 8) << "timed at the full size";
  EXPECT_EQ(real.resources[0].case_names, sim.resources[0].case_names);
  EXPECT_EQ(spec_for(Device::cpu, whole).cases.size(), 6u);
  EXPECT_EQ(spec_for(Device::cpu, whole).cases[0].params.at("n"), 4096);
  EXPECT_THAT(error_after([](json& j) { j["cases"][0]["sim"] = "yes"; }),
              HasSubstr("/cases/0/sim"));
}

TEST_F(SpecTest, ARuleMayHaveBoundsOfItsOwnOnAGpu) {
  document_["resources"] = json::parse(R"([
    {"name": "r", "case": "a", "metric": "m", "full": 1, "zero": 2, "why": "two threads",
     "sim": {"full": 10, "zero": 20, "why": "132 multiprocessors"}},
    {"name": "s", "case": "a", "metric": "m", "full": 1, "zero": 2, "why": "two threads"}])");
  write(document_.dump());
  const ChallengeSpec whole = load(), sim = spec_for(Device::sim, whole);
  EXPECT_EQ(whole.resources[0].full, 1);
  EXPECT_EQ(spec_for(Device::cpu, whole).resources[0].why, "two threads");
  EXPECT_EQ(sim.resources[0].full, 10);
  EXPECT_EQ(sim.resources[0].zero, 20);
  EXPECT_EQ(sim.resources[0].why, "132 multiprocessors");
  EXPECT_EQ(sim.resources[1].zero, 2);
  EXPECT_THAT(error_after([](json& j) { j["resources"][0]["sim"].erase("why"); }),
              HasSubstr("/resources/0/sim"));
}

// A failed case counts as `zero`, which would then be worth everything.
TEST_F(SpecTest, ABoundWithoutARangeIsRefused) {
  EXPECT_THAT(error_after([](json& j) { j["resources"][0]["zero"] = 1; }),
              HasSubstr("'full' and 'zero' are the same"));
}

TEST_F(SpecTest, ASpaceOfInputsGivesPlaceholders) {
  document_["random"] = json::parse(R"({"cases": 3, "weight": 0.5, "time_limit_s": 2,
    "instructions": 77, "base": {"k": 1}, "axes": [
      {"name": "n", "choices": [1, {"from": 2, "to": 9}], "usual": 0.25, "fuzz": [100], "sim": [1]},
      {"name": "x", "choices": [{"kind": "ties"}, null, "text"]}]})");
  write(document_.dump());
  const ChallengeSpec spec = load();
  ASSERT_EQ(spec.cases.size(), 5u);
  EXPECT_EQ(spec.cases[2].name, "random_1");
  EXPECT_FALSE(spec.cases[2].aligned);
  EXPECT_TRUE(spec.cases[3].aligned) << "every second one";
  EXPECT_EQ(spec.cases[3].group, CaseGroup::edge);
  EXPECT_EQ(spec.cases[4].group, CaseGroup::trap);
  EXPECT_TRUE(spec.cases[4].drawn);
  EXPECT_NE(spec.cases[4].catches, "");
  EXPECT_NE(spec.cases[4].uncaught_reason, "");
  EXPECT_EQ(spec.cases[4].weight, 0.5);
  EXPECT_EQ(spec.cases[4].time_limit_s, 2);
  EXPECT_FALSE(spec.cases[4].quick);
  ASSERT_TRUE(spec.random);
  EXPECT_EQ(spec.random->base, json({{"k", 1}}));
  EXPECT_EQ(spec.random->axes[0].choices.size(), 2u);
  EXPECT_EQ(spec.random->axes[0].rare.at(0), 100);
  EXPECT_EQ(spec.random->axes[0].usual, 0.25);
  const ChallengeSpec sim = spec_for(Device::sim, spec);
  EXPECT_EQ(sim.cases.back().name, "random_3");
  EXPECT_EQ(sim.cases.back().instruction_limit, 77u);
  EXPECT_EQ(sim.random->axes[0].choices.size(), 1u);
  EXPECT_TRUE(sim.random->axes[0].rare.empty());
  EXPECT_EQ(sim.random->axes[1].choices.size(), 3u);

  const auto error_of_space = [&](const std::string& change) {
    return error_after([&](json& j) { j["random"].merge_patch(json::parse(change)); });
  };
  EXPECT_EQ(error_of_space(R"({"sim": false})"), "no error");
  EXPECT_THAT(error_of_space(R"({"axes": [{"name": "n", "choices": []}]})"), HasSubstr("axes/0"));
  EXPECT_THAT(error_of_space(R"({"axes": [{"name": "n", "choices": [{"from": 3}]}]})"),
              HasSubstr("axes/0"));
  EXPECT_THAT(error_of_space(R"({"axes": [{"name": "n", "choices": [{"from": 3, "to": 2}]}]})"),
              HasSubstr("empty range"));
  EXPECT_THAT(error_of_space(R"({"axes": [{"name": "n", "choices": [1]},
                                          {"name": "n", "choices": [1]}]})"),
              HasSubstr("exists already"));
  EXPECT_THAT(error_after([](json& j) { j["cases"][0]["name"] = "random_2"; }),
              HasSubstr("exists already"));
}

TEST_F(SpecTest, AFailingAllocationIsForCasesThatExpectSuccess) {
  document_["cases"][0]["failing_allocation"] = 2;
  write(document_.dump());
  EXPECT_EQ(load().cases[0].failing_allocation, 2u);
  document_["cases"][0]["failing_allocation"] = "each";
  write(document_.dump());
  EXPECT_EQ(load().cases[0].failing_allocation, kEachAllocation);
  EXPECT_THAT(error_after([](json& j) { j["cases"][0]["expect_status"] = "EINVAL"; }),
              HasSubstr("/cases/0/failing_allocation"));
}

TEST_F(SpecTest, WhatJudgedStillDoesWhereCasesWereOnlyAdded) {
  const auto after = [&](const std::function<void(json&)>& change) {
    json changed = document_;
    change(changed);
    write(changed.dump(2));
    return load();
  };
  const ChallengeSpec spec = after([](json&) {});
  const std::vector<std::string> hashes = judging_hashes(spec);
  for (const char* added :
       {R"({"name": "t", "group": "timed", "params": {}})",
        R"({"name": "m", "group": "resource", "params": {}})",
        R"({"name": "e", "group": "edge", "params": {}})",
        R"({"name": "x", "group": "core", "params": {"seconds": 1}, "exclusive": true})"}) {
    const ChallengeSpec with = after([&](json& d) { d["cases"].push_back(json::parse(added)); });
    EXPECT_TRUE(still_judges(with, hashes)) << added;
    EXPECT_EQ(judging_hashes(with) == hashes, !tells_right_from_wrong(with.cases.back())) << added;
    const auto all = judging_hashes(with, {with.cases.back().name});
    EXPECT_FALSE(still_judges(spec, all)) << "it decided something, and is gone";
  }
  EXPECT_TRUE(still_judges(after([](json& d) { d["accuracy"]["zero"] = 5; }), hashes));
  EXPECT_TRUE(still_judges(after([](json& d) { d["cases"][0]["sim"] = false; }), hashes))
      << "they judge on the CPU";
  EXPECT_FALSE(still_judges(after([](json& d) { d["cases"][0]["params"]["n"] = 2; }), hashes));
  EXPECT_FALSE(still_judges(after([](json& d) { d["limits"]["memory_mib"] = 77; }), hashes));
}

TEST_F(SpecTest, NamesTheLineOfMalformedJson) {
  EXPECT_THAT(error_of("{\n  \"schema\": 1,\n  oops\n}"), HasSubstr("spec.json:3: not valid JSON"));
}

TEST_F(SpecTest, NamesThePointerOfAWrongType) {
  EXPECT_THAT(error_after([](json& j) { j["cases"][1]["weight"] = "heavy"; }),
              HasSubstr("at /cases/1/weight"));
  EXPECT_THAT(error_after([](json& j) { j["cases"][0]["colour"] = "red"; }), HasSubstr("colour"));
  EXPECT_THAT(error_after([](json& j) { j.erase("limits"); }), HasSubstr("limits"));
}

TEST_F(SpecTest, ChecksWhatASchemaCannot) {
  EXPECT_THAT(error_after([](json& j) { j["cases"][0]["repetitions"] = 5; }),
              HasSubstr("/cases/0/repetitions"));
  EXPECT_THAT(error_after([](json& j) { j["weights"]["tests"] = 6; }), HasSubstr("sum to 101"));
  EXPECT_THAT(error_after([](json& j) { j["correctness_shares"]["core"] = 0.6; }),
              HasSubstr("/correctness_shares"));
  EXPECT_THAT(error_after([](json& j) { j["cases"][1]["name"] = "a"; }),
              HasSubstr("exists already"));
  EXPECT_THAT(error_after([](json& j) { j["cases"][1]["capability"] = "x"; }),
              HasSubstr("/cases/1/capability"));
  EXPECT_THAT(error_after([](json& j) { j["resources"][0]["case"] = "x"; }),
              HasSubstr("/resources/0/case"));
  EXPECT_THAT(error_after([](json& j) { j["name"] = "other"; }),
              HasSubstr("folder's name 'sample'"));
  EXPECT_THAT(error_after([](json& j) { j["cases"][0]["group"] = "trap"; }), HasSubstr("catches"));
}

TEST_F(SpecTest, APaceShrinksTheTimeBudgetAndTheTimeLimit) {
  document_["cases"].push_back(json::parse(R"({"name": "t", "group": "timed", "params": {}})"));
  document_["cases"].push_back(
      json::parse(R"({"name": "long", "group": "resource", "exclusive": true,
    "params": {"seconds": 40}, "time_limit_s": 42, "pace": {"of": "t", "times": 20}})"));
  write(document_.dump());
  const CaseSpec whole = load().cases.back();
  EXPECT_EQ(paced(whole, 1.5).params.at("seconds"), 30.0);
  EXPECT_DOUBLE_EQ(paced(whole, 1.5).time_limit_s, 31.5);
  EXPECT_EQ(paced(whole, 3).params.at("seconds"), 40.0);
  EXPECT_DOUBLE_EQ(paced(whole, 3).time_limit_s, 42);
  const auto error_of_pace = [&](const std::string& change) {
    return error_after([&](json& j) { j["cases"].back().merge_patch(json::parse(change)); });
  };
  EXPECT_EQ(error_of_pace("{}"), "no error");
  EXPECT_THAT(error_of_pace(R"({"pace": {"of": "a"}})"), HasSubstr("'a' is not a timed case"));
  EXPECT_THAT(error_of_pace(R"({"pace": {"of": "x"}})"), HasSubstr("'x' is not a timed case"));
  EXPECT_THAT(error_of_pace(R"({"exclusive": false})"), HasSubstr("/cases/3/pace"));
  EXPECT_THAT(error_of_pace(R"({"repetitions": 5})"), HasSubstr("/cases/3/repetitions"));
  EXPECT_THAT(error_of_pace(R"({"params": {"seconds": null}})"), HasSubstr("/cases/3/pace"));
}

TEST_F(SpecTest, NamesAMissingFile) { EXPECT_THROW(load(), Error); }

TEST(ShippedSpecs, AreValid) {
  for (const ChallengeRow& row : challenge_rows()) {
    EXPECT_NO_THROW(load_spec(fs::path(testing::source_dir()) / "challenges" / row.name))
        << row.name;
  }
  EXPECT_FALSE(challenge_rows().empty());
}

}  // namespace
}  // namespace assay
