#include "judge/opinion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "assay/error.h"
#include "judge/opinion_file.h"
#include "opinions.h"
#include "support/temporary_folder.h"
#include "util/files.h"

namespace assay::judge {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::opinion_on;
using testing::sample_of;
using testing::TemporaryFolder;
using testing::unread_sample;

const CellKey kKey{"some model", "kv_cache", "2", Device::sim};

Opinion three_samples() {
  Opinion o = opinion_on(kKey, 8);
  o.samples = {sample_of(1, 8, 4), unread_sample(2), sample_of(3, 4, 6)};
  return o;
}

TEST(Opinion, IsTheMeanOfTheSamplesThatCount) {
  const Opinion o = three_samples();
  EXPECT_EQ(o.counted(), 2U);
  EXPECT_DOUBLE_EQ(*o.mark("design"), 6);
  EXPECT_DOUBLE_EQ(*o.mark("clarity"), 5);
  EXPECT_DOUBLE_EQ(*o.value(), (7 + 4.5) / 2);
  Opinion none = o;
  none.samples = {unread_sample(1)};
  EXPECT_FALSE(none.value());
  EXPECT_FALSE(none.mark("design"));
}

TEST(Opinion, SurvivesItsFile) {
  const Opinion before = three_samples();
  const Opinion after = parse_opinion(opinion_text(before), "f");
  EXPECT_EQ(opinion_text(after), opinion_text(before));
  EXPECT_TRUE(is_same_question(before, after));
  EXPECT_EQ(difference_of_terms(before, after), "");
  EXPECT_EQ(after.samples[1].problem, "no JSON object");
  EXPECT_EQ(after.samples[0].reply.tokens_in, 100);
  EXPECT_FALSE(after.samples[0].reply.tokens_out);
  EXPECT_EQ(after.samples[2].marks, before.samples[2].marks);
}

TEST(Opinion, KnowsAnotherQuestionFromOtherTerms) {
  const Opinion before = three_samples();
  Opinion now = before;
  now.source_hash = "other";
  EXPECT_FALSE(is_same_question(before, now));
  EXPECT_EQ(difference_of_terms(before, now), "");
  now = before;
  now.prompt.user += "!";
  EXPECT_FALSE(is_same_question(before, now));
  now = before;
  now.rubric.sha256 = "other";
  now.rubric.version = "3";
  EXPECT_EQ(difference_of_terms(before, now), "the rubric was short 2 and is short 3");
  now = before;
  now.settings["temperature"] = 0.5;
  EXPECT_EQ(difference_of_terms(before, now), "temperature was not given and is 0.5");
  EXPECT_EQ(difference_of_terms(now, before), "temperature was 0.5");
  now.settings["model"] = "org/other";
  EXPECT_THAT(difference_of_terms(before, now),
              HasSubstr("model was \"org/judge\" and is \"org/other\""));
}

std::string objection(const std::string& text) {
  try {
    parse_opinion(text, "o.json");
  } catch (const Error& e) {
    return e.what();
  }
  return "none";
}

TEST(Opinion, WhatIsDamagedIsNamedWithTheRemedy) {
  const std::string text = opinion_text(three_samples());
  EXPECT_THAT(objection(text.substr(0, text.size() / 2)),
              AllOf(HasSubstr("o.json: "), HasSubstr("move the file away")));
  const auto with = [&](const std::string& part, const std::string& instead) {
    std::string changed = text;
    return changed.replace(changed.find(part), part.size(), instead);
  };
  EXPECT_THAT(objection(with("\"schema\": 1", "\"schema\": 7")),
              HasSubstr("schema 7 instead of 1"));
  EXPECT_THAT(objection(with("\"sim\"", "\"gpu\"")), HasSubstr("no device 'gpu'"));
  EXPECT_THAT(objection(with("look at this", "look at that")), HasSubstr("the prompt"));
  EXPECT_THAT(objection(with("\"mark\": 8", "\"mark\": 80")), HasSubstr("out of range"));
  EXPECT_THAT(objection(with("\"weight\": 3.0", "\"weight\": 0.0")),
              HasSubstr("its rubric: at /criteria/0/weight"));
}

TEST(OpinionFile, IsFoundAgainByJudgeAndCell) {
  const TemporaryFolder folder;
  EXPECT_FALSE(read_opinion(folder.path, "judge", kKey));
  EXPECT_TRUE(read_opinions(folder.path).empty());
  EXPECT_TRUE(read_opinions(folder.path, kKey).empty());
  const Opinion o = three_samples();
  write_opinion(folder.path, o);
  EXPECT_TRUE(fs::exists(folder.path / "opinions/judge/some%20model/kv_cache/2.sim.json"));
  EXPECT_EQ(opinion_text(*read_opinion(folder.path, "judge", kKey)), opinion_text(o));
  EXPECT_FALSE(read_opinion(folder.path, "other", kKey));

  Opinion second = opinion_on({"a", "kv_cache", "", Device::cpu}, 3);
  second.judge = "another/../judge";
  write_opinion(folder.path, second);
  EXPECT_EQ(read_opinions(folder.path).size(), 2U);
  ASSERT_EQ(read_opinions(folder.path, kKey).size(), 1U);
  EXPECT_EQ(read_opinions(folder.path, kKey)[0].judge, "judge");
  // Locks and temporary files are not opinions.
  write_file_atomically(folder.path / "opinions" / "judge.lock", "");
  EXPECT_EQ(read_opinions(folder.path).size(), 2U);
}

TEST(OpinionFile, OneInAnotherPlaceIsRefused) {
  const TemporaryFolder folder;
  write_opinion(folder.path, three_samples());
  const fs::path cell = folder.path / "opinions/judge/some%20model/kv_cache/2.sim.json";
  fs::rename(cell, cell.parent_path() / "1.sim.json");
  try {
    read_opinions(folder.path);
    FAIL() << "not refused";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(),
                AllOf(HasSubstr("1.sim.json"), HasSubstr("move it to"), HasSubstr("2.sim.json")));
  }
}

}  // namespace
}  // namespace assay::judge
