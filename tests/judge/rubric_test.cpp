#include "judge/rubric.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "assay/error.h"
#include "opinions.h"
#include "support/paths.h"
#include "util/files.h"
#include "util/sha256.h"

namespace assay::judge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::kTwoCriteria;
using testing::two_criteria;

std::string objection(const std::string& text) {
  try {
    parse_rubric(text, "my.json");
  } catch (const Error& e) {
    return e.what();
  }
  return "none";
}

std::string with(const std::string& part, const std::string& instead) {
  std::string text = kTwoCriteria;
  return text.replace(text.find(part), part.size(), instead);
}

TEST(Rubric, IsRead) {
  const Rubric rubric = two_criteria();
  EXPECT_EQ(rubric.name, "short");
  EXPECT_EQ(rubric.version, "2");
  EXPECT_EQ(rubric.sha256, sha256_hex(kTwoCriteria));
  ASSERT_EQ(rubric.criteria.size(), 2U);
  EXPECT_EQ(rubric.criteria[0].key, "design");
  EXPECT_EQ(rubric.criteria[0].weight, 3);
  EXPECT_EQ(rubric.criteria[1].asks, "Is it clear?");
}

TEST(Rubric, ErrorsNameFilePlaceAndRemedy) {
  const std::string remedy = "challenges/rubric.schema.json";
  EXPECT_THAT(objection("{"), HasSubstr("my.json:1: not valid JSON"));
  EXPECT_THAT(objection(with("\"weight\": 1", "\"weight\": 0")),
              AllOf(HasSubstr("my.json: at /criteria/1/weight"), HasSubstr(remedy)));
  EXPECT_THAT(objection(with("\"version\": \"2\",", "")), HasSubstr(remedy));
  EXPECT_THAT(objection(with("\"clarity\"", "\"Clarity!\"")), HasSubstr("/criteria/1/key"));
  EXPECT_THAT(objection(with("\"schema\": 1", "\"schema\": 2")), HasSubstr("/schema"));
  EXPECT_THAT(
      objection(with("\"clarity\"", "\"design\"")),
      AllOf(HasSubstr("two criteria have the key 'design'"), HasSubstr("give each its own")));
}

TEST(Rubric, SurvivesResults) {
  const Rubric rubric = two_criteria(), again = rubric_from(to_json(rubric));
  EXPECT_EQ(again.sha256, rubric.sha256);
  EXPECT_EQ(to_json(again), to_json(rubric));
}

TEST(Rubric, TheShippedOneIsOne) {
  const std::string file = testing::source_dir() + "/challenges/rubric.json";
  EXPECT_EQ(parse_rubric(read_file(file), file).criteria.size(), 3U);
}

}  // namespace
}  // namespace assay::judge
