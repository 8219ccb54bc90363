#include "spec/public_cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <set>

#include "cases/challenge_registry.h"
#include "cases/correctness.h"
#include "draw/space.h"
#include "spec/spec.h"
#include "support/direct_runner.h"
#include "support/error_of.h"
#include "support/paths.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace assay {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

class PublicCasesTest : public ::testing::Test {
 protected:
  PublicCasesTest() {
    spec_ = parse_spec(R"({
      "schema": 1, "name": "sample", "title": "Sample", "difficulty": "medium", "summary": "s",
      "symbols": {"required": ["f"], "optional": []}, "limits": {"memory_mib": 64, "threads": 2},
      "weights": {"correctness": 50, "accuracy": 5, "performance": 20, "resources": 10, "completeness": 10, "tests": 5},
      "correctness_shares": {"core": 0.5, "edge": 0.2, "trap": 0.3}, "accuracy": {"full": 1, "zero": 4},
      "cases": [{"name": "a", "group": "core", "params": {"n": 5, "m": 1}, "sim": {"params": {"n": 2}}},
                {"name": "b", "group": "completeness", "capability": "extra", "params": {"n": 6}}],
      "random": {"axes": [{"name": "n", "choices": [1, 2]}]},
      "resources": [{"name": "r", "case": "a", "metric": "m", "full": 1, "zero": 2}],
      "capabilities": [{"name": "extra", "summary": "e"}]})",
                       "spec.json");
    document_ = json::parse(R"({"schema": 1, "seed": 4, "draws": 2, "cases": [
      {"name": "public_a", "group": "core", "about": "plain", "params": {"n": 3}},
      {"name": "public_b", "group": "completeness", "capability": "extra", "about": "more",
       "params": {"n": 4}, "sim": false},
      {"name": "public_speed", "group": "timed", "about": "speed", "params": {"n": 9}}]})");
  }

  PublicCases parsed() const { return parse_public_cases(spec_, document_.dump(), "public.json"); }
  std::string error_after(const std::function<void(json&)>& change) {
    const json before = document_;
    change(document_);
    std::string error = testing::error_of([&] { parsed(); });
    document_ = before;
    return error;
  }

  ChallengeSpec spec_;
  json document_;
};

TEST_F(PublicCasesTest, StandInThePlaceOfThoseOfGrading) {
  const PublicCases published = parsed();
  EXPECT_EQ(published.seed, 4u);
  EXPECT_EQ(published.about.at("public_a"), "plain");
  const ChallengeSpec spec = public_spec(spec_, published);
  std::vector<std::string> names;
  for (const CaseSpec& c : spec.cases) {
    names.push_back(c.name);
    EXPECT_TRUE(c.quick) << c.name;
  }
  EXPECT_THAT(names, ::testing::ElementsAre("public_a", "public_b", "public_speed", "public_draw_1",
                                            "public_draw_2"));
  EXPECT_TRUE(spec.cases.back().drawn);
  EXPECT_TRUE(spec.resources.empty());
  EXPECT_EQ(spec.capabilities.size(), 1u);
  EXPECT_NE(spec.hash, spec_.hash);
  // The timed case runs on the simulator by default; other cases must say so.
  EXPECT_EQ(spec_for(Device::sim, spec).cases.size(), 4u);
}

TEST_F(PublicCasesTest, AreRefusedWithThePlaceAndTheCause) {
  using Change = std::function<void(json&)>;
  const std::pair<Change, const char*> kRefused[] = {
      {[](json& j) { j["cases"][0]["name"] = "a"; }, "/cases/0/name"},
      {[](json& j) { j["cases"][0]["group"] = "trap"; }, "/cases/0/group"},
      {[](json& j) { j["cases"][0].erase("about"); }, "about"},
      {[](json& j) { j["cases"][1]["name"] = "public_a"; }, "'public_a' exists already"},
      {[](json& j) { j["cases"][1]["name"] = "public_draw_2"; }, "'public_draw_2' exists already"},
      {[](json& j) {
         j["cases"][0]["params"] = {{"n", 5}, {"m", 1}};
       },
       "params of 'a'"},
      // A case that is graded only on the simulator.
      {[](json& j) {
         j["cases"][0]["params"] = {{"n", 2}, {"m", 1}};
       },
       "params of 'a'"},
      {[](json& j) {
         j["cases"][0]["params"] = {{"n", 7}, {"m", 1}};
         j["cases"][0]["sim"] = {{"params", {{"n", 5}}}};
       },
       "params of 'a'"},
      {[](json& j) { j["cases"][1]["capability"] = "other"; }, "/cases/1/capability"},
      {[](json& j) { j["cases"].erase(1); }, "whether the capability 'extra' works"},
      {[](json& j) { j["cases"].erase(2); }, "one case must be timed"},
      {[](json& j) {
         j["cases"].push_back(j["cases"][2]);
         j["cases"][3]["name"] = "public_fast";
       },
       "one case must be timed"},
      {[](json& j) { j["seed"] = -1; }, "/seed"},
  };
  for (const auto& [change, says] : kRefused) EXPECT_THAT(error_after(change), HasSubstr(says));
  EXPECT_EQ(error_after([](json&) {}), "no error");
  spec_.random.reset();
  EXPECT_THAT(error_after([](json&) {}), HasSubstr("/draws"));
}

TEST_F(PublicCasesTest, LeaveTheHashOfTheSpecAlone) {
  const testing::TemporaryFolder folder;
  const fs::path challenge = folder.path / "vector";
  fs::create_directories(challenge);
  const fs::path shipped =
      fs::path(testing::source_dir()) / "challenges" / challenge_rows()[0].name;
  std::string text = read_file(shipped / "spec.json");
  const std::string name = "\"" + std::string(challenge_rows()[0].name) + "\"";
  text.replace(text.find(name), name.size(), "\"vector\"");
  write_file_atomically(challenge / "spec.json", text);
  const std::string published = read_file(shipped / "public.json");
  write_file_atomically(challenge / "public.json", published);
  const ChallengeSpec before = load_spec(challenge);
  write_file_atomically(challenge / "public.json", published + "\n");
  const ChallengeSpec after = load_spec(challenge);
  EXPECT_EQ(before.hash, after.hash);
  EXPECT_NE(load_public_cases(before).hash, parse_public_cases(before, published, "p").hash);
}

TEST(SpecNames, NoGradedCaseHasTheNameOfAPublicOne) {
  const std::string text = read_file(fs::path(testing::source_dir()) / "challenges" /
                                     challenge_rows()[0].name / "spec.json");
  json document = json::parse(text);
  document["cases"][0]["name"] = "public_basic";
  EXPECT_THAT(testing::error_of([&] { parse_spec(document.dump(), "s"); }),
              HasSubstr("/cases/0/name"));
}

// --- those that are shipped ----------------------------------------------------------------------

class ShippedPublicCases : public ::testing::TestWithParam<std::string> {
 protected:
  ChallengeSpec spec_ = load_spec(fs::path(testing::source_dir()) / "challenges" / GetParam());
  PublicCases published_ = load_public_cases(spec_);
  const Challenge& challenge_ =
      std::ranges::find(challenge_rows(), GetParam(), &ChallengeRow::name)->get();
};

TEST_P(ShippedPublicCases, CanBePlannedAndShownOnBothDevices) {
  for (const Device device : {Device::cpu, Device::sim}) {
    const ChallengeSpec spec = spec_for(device, public_spec(spec_, published_));
    EXPECT_GE(spec.cases.size(), 10u);
    for (const CaseSpec& c : spec.cases) {
      const CaseSpec whole =
          c.drawn ? draw::draw_case(challenge_, spec, c, published_.seed).spec : c;
      EXPECT_GT(challenge_.plan(whole).buffers.size(), 0u) << c.name;
      EXPECT_NE(challenge_.shape(whole), "") << c.name;
    }
  }
}

// No seed of a grading, not even the public one, fills an input as a public case does.
TEST_P(ShippedPublicCases, ShareNoSeedWithAGrading) {
  std::set<std::uint64_t> published, graded;
  for (const CaseSpec& c : published_.cases)
    published.insert(cases::case_seed(published_.seed, spec_.name, c.name));
  for (const CaseSpec& c : spec_.cases)
    graded.insert(cases::case_seed(published_.seed, spec_.name, c.name));
  EXPECT_EQ(published.size(), published_.cases.size());
  for (const std::uint64_t seed : graded) EXPECT_FALSE(published.contains(seed));
}

// Naive and par fail none of these cases, and at least one of them supports each.
TEST_P(ShippedPublicCases, AreRightInTheChallengesOwnImplementations) {
  const ChallengeSpec spec = public_spec(spec_, published_);
  std::set<std::string> passed;
  for (const char* name : {"naive.cpp", "par.cpp"}) {
    testing::DirectRunner runner(
        GetParam(), testing::compile(spec_.directory + "/baselines/" + name, GetParam()));
    for (const CaseSpec& c : spec.cases) {
      if (c.group == CaseGroup::timed) continue;
      const CaseSpec whole =
          c.drawn ? draw::draw_case(challenge_, spec, c, published_.seed).spec : c;
      const CaseResult result =
          runner.run(whole, cases::case_seed(published_.seed, spec.name, c.name));
      if (result.verdict == Verdict::ok) passed.insert(c.name);
      const bool may_lack = c.group == CaseGroup::completeness;
      EXPECT_TRUE(result.verdict == Verdict::ok ||
                  (may_lack && result.verdict == Verdict::unsupported))
          << name << ", " << c.name << ": " << code(result.verdict) << " " << result.detail;
    }
  }
  for (const CaseSpec& c : spec.cases) {
    EXPECT_TRUE(c.group == CaseGroup::timed || passed.contains(c.name)) << c.name;
  }
}

std::vector<std::string> shipped_names() {
  std::vector<std::string> names;
  for (const ChallengeRow& row : challenge_rows()) names.emplace_back(row.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, ShippedPublicCases, ::testing::ValuesIn(shipped_names()),
                         [](const auto& named) { return named.param; });

}  // namespace
}  // namespace assay
